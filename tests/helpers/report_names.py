"""Names that must stay text wherever a report shows them."""

HOSTILE = (
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    '"><svg onload=window.hacked=1>',
    "</style></script><b>bold</b>",
    "&lt;b&gt; | **bold** `code` [link](javascript:alert(1))",
    "name\u202egnp.exe\x00\x1b[31m",
)
