"""Projects of every shape: the commands that they are checked with, and what they need first."""

import pytest

from notyet.project import detect

UV = '[dependency-groups]\ndev = [{include-group = "tests"}, "ruff"]\ntests = ["pytest"]\n'
PRE_COMMIT = "repos:\n- repo: x\n  hooks:\n  - id: ruff\n  - id: mypy\n"


def package(**scripts):
    """Return a package.json with these scripts; `__` is a colon."""
    return {"scripts": {key.replace("__", ":"): script for key, script in scripts.items()}}


SHAPES = {
    "gradle": ({"build.gradle": ""}, {"check": "gradle check --quiet"}),
    "gradle-wrapper": (
        {"settings.gradle.kts": "", "gradlew": "", "app/build.gradle.kts": ""},
        {"check": "./gradlew check --quiet"},
    ),
    "maven": ({"pom.xml": "<project>"}, {"check": "mvn --batch-mode --quiet verify"}),
    "maven-wrapper": (
        {"pom.xml": "<modules>", "mvnw": "", "core/pom.xml": "", "Makefile": "test:\n"},
        {"check": "./mvnw --batch-mode --quiet verify"},
    ),
    "ruby-rake": (
        {"Gemfile": "gem 'rubocop'\n", "Rakefile": "Rake::TestTask.new(:test)\n"},
        {"lint": "bundle exec rubocop", "tests": "bundle exec rake test"},
    ),
    "ruby-rspec": ({"Gemfile": "", ".rspec": ""}, {"tests": "bundle exec rspec"}),
    "ruby-no-tests": ({"Gemfile": "", "Rakefile": "task :release\n"}, {}),
    "php-scripts": (
        {"composer.json": {"scripts": {"test": "x", "phpstan": "x"}}, "phpunit.xml": ""},
        {"types": "composer run-script phpstan", "tests": "composer run-script test"},
    ),
    "php-laravel": (
        {"composer.json": {"require-dev": {"laravel/pint": "^1"}}, "phpunit.xml": ""},
        {"format": "vendor/bin/pint --test", "tests": "vendor/bin/phpunit"},
    ),
    "elixir": (
        {"mix.exs": "defp deps do [{:plug, '~> 1'}] end\n", ".formatter.exs": ""},
        {"format": "mix format --check-formatted", "tests": "mix test"},
    ),
    "dotnet": (
        {"My App.sln": "", "App/App.csproj": ""},
        {"tests": "dotnet test 'My App.sln'"},
    ),
    "cmake": (
        {"CMakeLists.txt": "project(x)\nenable_testing()\n"},
        {"tests": "cmake --build build && ctest --test-dir build --output-on-failure"},
    ),
    "cmake-no-tests": ({"CMakeLists.txt": "project(x)\n"}, {"build": "cmake --build build"}),
    "cmake-helps": (
        {"CMakeLists.txt": "enable_testing()\n", "pytest.ini": ""},
        {"tests": "pytest -q"},
    ),
    "deno": (
        {"deno.jsonc": '{"tasks": {"test": "deno test -A"}} // x\n'},
        {"format": "deno fmt --check", "lint": "deno lint", "tests": "deno task test"},
    ),
    "deno-helps": ({"deno.json": "{}", "package.json": package(test="x")}, {"tests": "npm test"}),
    "swift": ({"Package.swift": "", "Tests/a.swift": ""}, {"tests": "swift test --quiet"}),
    "lefthook": (
        {"lefthook.yml": "pre-commit:\n  commands:\n"},
        {"lefthook": "lefthook run pre-commit --all-files"},
    ),
    "lefthook-of-a-package": (
        {"lefthook.yml": "pre-commit:\n", "package.json": {"devDependencies": {"lefthook": "1"}}},
        {"lefthook": "npx --no-install lefthook run pre-commit --all-files"},
    ),
    "lefthook-writes": ({"lefthook.yml": "pre-commit:\n  stage_fixed: true\n"}, {}),
    "hk": ({"hk.pkl": ""}, {"hk": "hk check --all"}),
    "biome": ({"biome.json": "{}"}, {"lint": "npx --no-install biome ci ."}),
    "biome-script": (
        {"biome.json": "{}", "package.json": package(lint="biome check"), "yarn.lock": ""},
        {"lint": "yarn run lint"},
    ),
    "tsconfig": ({"tsconfig.json": "{}"}, {"types": "npx --no-install tsc --noEmit"}),
    "tsconfig-dependency": (
        {"tsconfig.json": "{}", "package.json": {"devDependencies": {"typescript": "5"}}},
        {"types": "npx --no-install tsc --noEmit"},
    ),
    "tsconfig-of-an-editor": ({"tsconfig.json": "{}", "package.json": {}}, {}),
    "tox": ({"tox.ini": "[tox]\n"}, {"tests": "tox"}),
    "django": (
        {"manage.py": 'os.environ.setdefault("DJANGO_SETTINGS_MODULE", "x")\n'},
        {"tests": "python3 manage.py test"},
    ),
    "rust-workspace": (
        {"Cargo.toml": "[package]\n[workspace]\n", "core/Cargo.toml": "[package]\n"},
        {
            "format": "cargo fmt --all --check",
            "lint": "cargo clippy --workspace --quiet -- -D warnings",
            "tests": "cargo test --workspace --quiet",
        },
    ),
    "go-linter": (
        {"go.mod": "module x\n", ".golangci.yml": ""},
        {"lint": "golangci-lint run", "tests": "go test ./..."},
    ),
    "uv-groups": (
        {"pyproject.toml": UV + "[tool.uv]\n[tool.mypy]\nfiles = 'x'\n"},
        {
            "lint": "uv run ruff check .",
            "types": "uv run --with mypy mypy",
            "tests": "uv run pytest -q",
        },
    ),
    "uv-other-group": (
        {"pyproject.toml": UV + "[tool.uv]\ndefault-groups = ['tests']\n"},
        {"lint": "uv run --group dev ruff check .", "tests": "uv run pytest -q"},
    ),
    "uv-extra": (
        {"pyproject.toml": "[project.optional-dependencies]\nt = ['pytest']\n", "uv.lock": ""},
        {"tests": "uv run --extra t pytest -q"},
    ),
    "uv-by-its-makefile": (
        {"pyproject.toml": UV, "Makefile": "sync:\n\tuv sync\n"},
        {"lint": "uv run ruff check .", "tests": "uv run pytest -q"},
    ),
    "poetry": (
        {"pyproject.toml": "[tool.poetry.group.dev.dependencies]\npytest = '8'\n"},
        {"tests": "poetry run pytest -q"},
    ),
    "pdm-only-builds": (
        {"pyproject.toml": "[tool.pdm]\nversion = 1\n[tool.pytest]\n"},
        {"tests": "pytest -q"},
    ),
    "hatch": (
        {
            "hatch.toml": "[envs.hatch-test]\n[envs.hatch-static-analysis]\n",
            "pytest.ini": "",
            "ruff.toml": "",
        },
        {"lint": "hatch fmt --check", "tests": "hatch test"},
    ),
    "hatch-script": (
        {"hatch.toml": "[envs.types.scripts]\ncheck = 'mypy {args:src}'\n", "mypy.ini": ""},
        {"types": "hatch run types:check"},
    ),
    "ruff-files-as-in-a-script": (
        {"ruff.toml": "fix = true\n", "Makefile": "x:\n\truff check --fix lib\n", "lib/x": ""},
        {"lint": "ruff check --no-fix lib"},
    ),
    "ruff-fixes": ({"ruff.toml": "fix = true\n"}, {"lint": "ruff check --no-fix ."}),
    "ruff-fixes-in-pyproject": (
        {"pyproject.toml": "[tool.ruff]\nfix = true\n"},
        {"lint": "ruff check --no-fix ."},
    ),
    "ruff-format-in-a-script": (
        {"ruff.toml": "", "scripts/lint": "ruff format --check x\n"},
        {"format": "ruff format --check .", "lint": "ruff check ."},
    ),
    "mypy-as-in-a-script": (
        {
            "mypy.ini": "",
            "scripts/check": 'SOURCE="app tests"\n# mypy is slow\nmypy --strict $SOURCE\n',
            "app/x": "",
            "tests/x": "",
        },
        {"types": "mypy app tests"},
    ),
    "mypy-as-in-tox": (
        {"mypy.ini": "", "tox.toml": 'commands = [["mypy", "lib"]]\n', "lib/x": ""},
        {"types": "mypy lib", "tests": "tox"},
    ),
    "mypy-src": ({"mypy.ini": "", "src/x": ""}, {"types": "mypy src"}),
    "mypy-not-run": ({"requirements.txt": "mypy\n"}, {}),
    "ty": ({"ty.toml": ""}, {"types": "ty check"}),
    "pyright": ({"pyrightconfig.json": "{}"}, {"types": "pyright"}),
    "pre-commit-runs-them": (
        {".pre-commit-config.yaml": PRE_COMMIT, "ruff.toml": "", "mypy.ini": ""},
        {"pre-commit": "pre-commit run --all-files"},
    ),
    "pre-commit-and-a-dependency": (
        {".pre-commit-config.yaml": PRE_COMMIT, "requirements-dev.txt": "ruff\n"},
        {"lint": "ruff check .", "pre-commit": "pre-commit run --all-files"},
    ),
    "prek": (
        {".pre-commit-config.yaml": PRE_COMMIT, "requirements-dev.txt": "prek\n"},
        {"pre-commit": "prek run --all-files"},
    ),
    "installed": (
        {"pytest.ini": "", ".venv/bin/pytest": "", "mypy.ini": "", "ruff.toml": ""},
        {"lint": "ruff check .", "types": "mypy .", "tests": ".venv/bin/pytest -q"},
    ),
    "node-twins": (
        {
            "package.json": package(
                lint="eslint --fix .",
                lint__check="eslint .",
                format="prettier --write .",
                format__ci="prettier -c .",
                test="vitest watch",
                test__run="vitest run",
            ),
            "pnpm-lock.yaml": "",
        },
        {
            "format": "pnpm run format:ci",
            "lint": "pnpm run lint:check",
            "tests": "pnpm run test:run",
        },
    ),
    "node-format-that-checks": (
        {"package.json": package(format="oxfmt --check")},
        {"format": "npm run format"},
    ),
    "node-format-that-writes": ({"package.json": package(format="oxfmt")}, {}),
    "node-writes-after": (
        {"package.json": package(build="vite build", postbuild="biome check --write .")},
        {},
    ),
    "node-writes-within": (
        {"package.json": package(lint="npm run a && run-s b", a="eslint .", b="prettier -w .")},
        {},
    ),
    "node-own-build": ({"package.json": package(build="node build.js")}, {}),
    "node-build-beside-sources": (
        {"package.json": package(build="tsc"), "tsconfig.json": "{}"},
        {},
    ),
    "node-build": (
        {
            "package.json": package(build="rimraf dist && NODE_ENV=x tsc -p ."),
            "tsconfig.json": '{"compilerOptions": {"outDir": "dist"}}',
        },
        {"build": "npm run build"},
    ),
    "node-scripts-of-each-other": (
        {
            "package.json": package(
                **{f"s{n}": "run-s " + " ".join(f"s{m}" for m in range(30)) for n in range(30)},
                test="run-s s1",
                lint="run-s s2 && eslint --fix .",
            )
        },
        {},
    ),
    "node-script-of-itself": ({"package.json": package(test="npm test")}, {"tests": "npm test"}),
    "make": (
        {"Makefile": "test:\nlint:\nformat-check:\n"},
        {"format": "make format-check", "lint": "make lint", "tests": "make test"},
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_has_its_gates(project, shape):
    files, gates = SHAPES[shape]
    found = detect(project(files))
    assert {one.name: one.run for one in found.proposals} == gates
    assert found.mistakes == ()


DEPENDS = {"scripts": {"test": "x"}, "dependencies": {"x": "1"}}


@pytest.mark.parametrize(
    ("files", "install", "is_installed"),
    [
        ({"package.json": DEPENDS}, "npm install", False),
        ({"package.json": DEPENDS, "package-lock.json": ""}, "npm ci", False),
        ({"package.json": DEPENDS, "pnpm-lock.yaml": ""}, "pnpm install", False),
        ({"package.json": DEPENDS, "node_modules/x": ""}, "npm install", True),
        ({"package.json": package(test="node --test")}, "npm install", True),
        ({"composer.json": {"scripts": {"test": "x"}}}, "composer install", False),
        ({"mix.exs": ""}, "mix deps.get", False),
        ({"mix.exs": "", "deps/x": ""}, "mix deps.get", True),
        ({"Gemfile": "", ".rspec": ""}, "bundle install", True),
        ({"CMakeLists.txt": ""}, "cmake -S . -B build", False),
        ({"CMakeLists.txt": "", "build/CMakeCache.txt": ""}, "cmake -S . -B build", True),
        ({"pytest.ini": "", "uv.lock": ""}, "uv sync", True),
        ({"pytest.ini": "", "poetry.lock": ""}, "poetry install", True),
        ({"pytest.ini": "", "pyproject.toml": UV}, "pip install --group dev", True),
        (
            {"pytest.ini": "", "pyproject.toml": UV.replace("dev", "x")},
            "pip install --group tests",
            True,
        ),
        (
            {"pyproject.toml": "[project.optional-dependencies]\nt = ['pytest']\n"},
            "pip install -e '.[t]'",
            True,
        ),
        (
            {"pyproject.toml": "[project]\ndependencies = ['pytest']\n"},
            "pip install -e .",
            True,
        ),
        (
            {"pyproject.toml": "[project]\n[dependency-groups]\n'a b' = ['pytest']\n"},
            "pip install -e . --group 'a b'",
            True,
        ),
        ({"requirements-dev.txt": "pytest\n"}, "pip install -r requirements-dev.txt", True),
        ({"pytest.ini": ""}, "pip install pytest", True),
        ({"go.mod": "module x\n"}, "", True),
        ({"Makefile": "test:\n", "setup.py": ""}, "pip install -e .", True),
        ({"Makefile": "test:\n", "package.json": DEPENDS | {"scripts": {}}}, "npm install", True),
        ({"biome.json": "{}", "package.json": {}, "yarn.lock": ""}, "yarn install", True),
    ],
)
def test_a_gate_names_what_installs_its_dependencies(project, files, install, is_installed):
    found = detect(project(files)).proposals[-1]
    assert (found.install, found.is_installed) == (install, is_installed)


TESTED = package(test="x", lint="x")
WORKSPACES = {
    "npm": {"package.json": {"workspaces": ["./packages/*", "!packages/c", "../x", "/x"]}},
    "yarn": {"package.json": {"workspaces": {"packages": ["packages/*"]}}},
    "pnpm": {"pnpm-workspace.yaml": "packages:\n- packages/*\n- '!**/test/**'\n"},
    "uv": {"pyproject.toml": "[tool.uv.workspace]\nmembers = ['packages/*']\n"},
}
MEMBERS = {"packages/a/package.json": TESTED, "packages/b/README": "", "packages/d": ""}


@pytest.mark.parametrize("kind", WORKSPACES)
def test_the_members_of_a_workspace_have_gates_of_their_own(project, kind):
    found = detect(project(WORKSPACES[kind] | MEMBERS))
    assert found.globs == ("packages/*",)
    assert [*found.members] == ["packages/a"]
    runner = "pnpm" if kind == "pnpm" else "npm"
    gates = [(one.run, one.dir, one.file) for one in found.members["packages/a"]]
    assert [gate[1:] for gate in gates] == [("", "package.json")] * 2
    assert gates[1][0] in {f"{runner} test", "npm test"}
    assert found.proposals == ()


def test_a_name_that_the_workspace_has_counts_for_its_members(project):
    root = {"package.json": {"workspaces": ["web"], "scripts": {"test": "turbo run test"}}}
    found = detect(project({**root, "web/package.json": TESTED}))
    assert [one.name for one in found.members["web"]] == ["lint"]
    assert [one.name for one in found.proposals] == ["tests"]


def test_modules_of_a_go_workspace_are_members(project):
    work = "go 1.22\n\nuse (\n\t./api\n\t./lib/core // x\n)\n"
    files = {"go.work": work, "api/go.mod": "module a\n", "lib/core/go.mod": "module b\n"}
    found = detect(project(files))
    assert found.globs == ("api", "lib/core")
    assert [one.run for one in found.members["lib/core"]] == ["go vet ./...", "go test ./..."]


def test_a_workspace_whose_members_have_no_gates_has_none(project):
    found = detect(project(WORKSPACES["npm"] | {"packages/a/package.json": {}}))
    assert (found.globs, found.members) == ((), {})
