"""Writes an SBOM in CycloneDX's JSON: the crates and npm packages with code in a published file. usage: sbom.py PAGE FILE

PAGE is the folder of the page in the browser. The same sources always give the same file: it has no time and no number of its own.
"""

import json
import pathlib
import re
import sys

import notices
import release
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL


def component(kind, name, version, licence):
    group, _, short = name.rpartition("/")
    purl = PackageURL(kind, group or None, short, version).to_string()
    # Older crates write MIT/Apache-2.0.
    licences = [{"expression": licence.replace("/", " OR ")}]
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "licenses": licences, "purl": purl}


def main(page, file):
    found = {("cargo", crate["name"], crate["version"], crate["license"]) for crate in notices.crates()}
    # `web/build.mjs` names the packages that are in the page.
    text = (pathlib.Path(page) / "LICENCES.txt").read_text("utf-8")
    found |= {("npm", *fields) for fields in re.findall(r"^-{80}\n(\S+) (\S+) \((.+)\)\n-{80}$", text, re.MULTILINE)}
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "metadata": {"component": {"type": "library", "bom-ref": "evtx", "name": "evtx", "version": release.version()}},
        "components": [component(*fields) for fields in sorted(found)],
    }
    text = json.dumps(bom, indent=1) + "\n"
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise SystemExit(f"{file} would not be valid: {error}")
    pathlib.Path(file).write_text(text, "utf-8", newline="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
