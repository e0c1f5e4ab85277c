"""All kinds of hostility, by name."""

from hostile import accidents, arrays, files, stored
from hostile.campaign import Kind

KINDS: dict[str, Kind] = {
    "files": Kind(files.prepare_files, files.try_file),
    "bombs": Kind(files.prepare_bombs, files.try_bomb),
    "predictions": Kind(arrays.prepare_predictions, arrays.try_predictions, plain=True),
    "losses": Kind(arrays.prepare_losses, arrays.try_loss, plain=True),
    "calibrators": Kind(arrays.prepare_calibrators, arrays.try_calibrator, plain=True),
    "artifacts": Kind(stored.prepare_artifacts, stored.try_artifact, plain=True),
    "checkpoints": Kind(stored.prepare_checkpoints, stored.try_checkpoint, seconds=15),
    "runs": Kind(stored.prepare_runs, stored.try_run_folder, seconds=30),
    "specs": Kind(stored.prepare_specs, stored.try_spec),
    "kills": Kind(accidents.prepare_writes, accidents.try_kill),
    "full_disk": Kind(accidents.prepare_writes, accidents.try_full_disk),
    "forks": Kind(accidents.prepare_forks, accidents.try_fork),
}
