"""Builds a function as `sam build` does for BuildMethod: go1.x.

    python3 build.py FOLDER ARTIFACTS ARCHITECTURE
"""

import pathlib
import sys
import tempfile

from aws_lambda_builders.builder import LambdaBuilder

folder, artifacts, architecture = sys.argv[1:]
folder = str(pathlib.Path(folder).resolve())
with tempfile.TemporaryDirectory() as scratch:
    LambdaBuilder(language="go", dependency_manager="modules", application_framework=None).build(
        folder, artifacts, scratch, folder + "/go.mod", runtime="provided.al2023", architecture=architecture,
        options={"artifact_executable_name": "bootstrap"})  # SAM gives it the template's Handler
