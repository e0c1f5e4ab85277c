"""All kinds of tries, by name."""

from stress import (
    accidents,
    adapters,
    arrays,
    awkward,
    cleaning,
    environments,
    files,
    saved_models,
    states,
    stored,
    ties,
    user_code,
)
from stress.judge import Kind

KINDS: dict[str, Kind] = {
    "files": Kind(files.prepare_files, files.try_file),
    "bombs": Kind(files.prepare_bombs, files.try_bomb),
    "predictions": Kind(arrays.prepare_predictions, arrays.try_predictions, plain=True),
    "losses": Kind(arrays.prepare_losses, arrays.try_loss, plain=True),
    "calibrators": Kind(arrays.prepare_calibrators, arrays.try_calibrator, plain=True),
    "ties": Kind(ties.prepare_ties, ties.try_ties),
    "awkward": Kind(awkward.prepare_awkward, awkward.try_round_trip),
    "output": Kind(awkward.prepare_awkward, awkward.try_output),
    "artifacts": Kind(stored.prepare_artifacts, stored.try_artifact, plain=True),
    "checkpoints": Kind(stored.prepare_checkpoints, stored.try_checkpoint, seconds=15),
    "models": Kind(saved_models.prepare_saved_models, saved_models.try_saved_model),
    "states": Kind(states.prepare_states, states.try_forged_state),
    "merges": Kind(states.prepare_states, states.try_merge),
    "monitors": Kind(stored.prepare_monitors, stored.try_monitor),
    "runs": Kind(stored.prepare_runs, stored.try_run_folder, seconds=30),
    "cleaning": Kind(cleaning.prepare_cleaning, cleaning.try_cleaning),
    "specs": Kind(stored.prepare_specs, stored.try_spec),
    "shadowing": Kind(user_code.prepare_shadowing, user_code.try_shadowing),
    "references": Kind(user_code.prepare_references, user_code.try_reference),
    "adapters": Kind(adapters.prepare_adapters, adapters.try_adapter),
    "environments": Kind(environments.prepare_environments, environments.try_environment),
    "kills": Kind(accidents.prepare_writes, accidents.try_kill),
    "full_disk": Kind(accidents.prepare_writes, accidents.try_full_disk),
    "forks": Kind(accidents.prepare_forks, accidents.try_fork),
}
