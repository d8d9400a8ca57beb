#!/bin/sh
# Everything that LocalStack needs where there is no container engine: its environment, our plugin
# in that, and DynamoDB Local beside it, whose every file is held to a checksum.
set -eu
cd "$(dirname "$0")/../../.."
here=infra/local/localstack environment=.tools/localstack database=.tools/dynamodb-local

if ! command -v java >/dev/null 2>&1 || ! command -v mvn >/dev/null 2>&1; then
    cat >&2 <<'WHY'
Java (17 or newer) or Maven is missing: LocalStack's DynamoDB is a Java program from Maven Central.
Install both, then run the same command again:
  Debian, Ubuntu:  apt install openjdk-17-jre-headless maven
  macOS:           brew install maven
WHY
    exit 1
fi

# Not editable: that is where plux, which finds plugins, fails.
infra/local/environment.sh "$environment" "$here/localstack.lock" "./$here/plugin"

sums() {
    if command -v sha256sum >/dev/null 2>&1; then sha256sum -c --quiet; else shasum -a 256 -c --quiet; fi
}
checked() { (cd "$1" && sums) <"$here/dynamodb.sha256"; }

if ! checked "$database" >/dev/null 2>&1; then
    echo "==> $database: DynamoDB Local from Maven Central (once, 51 MB)"
    half=$PWD/$database.half
    rm -rf "$database" "$half"
    mvn --quiet --batch-mode -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$half"
    if ! checked "$half"; then
        echo "$half: not what $here/dynamodb.sha256 says, and not used. After a change of $here/pom.xml write that file anew: (cd $half && sha256sum *) >$here/dynamodb.sha256" >&2
        exit 1
    fi
    mv "$half" "$database"
fi
touch "$environment/.plugin"
echo "==> LocalStack is ready"
