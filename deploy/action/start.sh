#!/usr/bin/env bash
# Carries out action.yml: downloads a release, starts the server, waits until it works, and
# tells the following steps its address. The server ends with the job.
set -euo pipefail

# fail ends the step. A line of its text that begins with :: would be a command to the runner.
fail() {
	local text=${1//'%'/%25}
	text=${text//$'\r'/%0D}
	echo "::error title=Reprise::${text//$'\n'/%0A}"
	exit 1
}

# Inputs may come from whoever has opened a pull request. Each line of the files that name variables and outputs to the
# following steps is one of them, so what is written there is of one line, and of these characters.
version=$REPRISE_ACTION_VERSION
[[ $version =~ ^v[0-9][0-9A-Za-z.+-]*$ ]] ||
	fail "The version is \"$version\": use the action at a tag, as in reprise-sqs/reprise@v0.1.0, or set version to one."
[[ $REPRISE_ACTION_REGION =~ ^[a-z0-9-]{1,64}$ ]] ||
	fail "The region is \"$REPRISE_ACTION_REGION\": use letters, digits and hyphens, as in eu-central-1."
[[ $REPRISE_ACTION_ADDRESS =~ ^[][0-9A-Za-z.:-]+:[0-9]+$ ]] ||
	fail "The address is \"$REPRISE_ACTION_ADDRESS\": name the host and port, as in 127.0.0.1:9324."
case $(uname -s) in
Linux) system=linux ;;
Darwin) system=darwin ;;
*) fail "The action runs on Linux and macOS. On $(uname -s) download the program and start it: docs/server.md." ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "There is no program for $(uname -m): build one with go install github.com/reprise-sqs/reprise/cmd/reprise@$version." ;;
esac

# Download it, and check it before it runs.
releases=${REPRISE_ACTION_RELEASES:-https://github.com/reprise-sqs/reprise/releases/download}
name=reprise_${version}_${system}_${arch}
directory=$RUNNER_TEMP/reprise-$version
mkdir -p "$directory"
cd "$directory"
for file in "$name.tar.gz" SHA256SUMS; do
	curl --fail --silent --show-error --location --retry 3 --output "$file" "$releases/$version/$file" ||
		fail "$releases/$version/$file could not be downloaded: is there a release $version?"
done
sum=$(grep "  $name.tar.gz\$" SHA256SUMS) || fail "SHA256SUMS of $version has no line for $name.tar.gz."
if command -v sha256sum >/dev/null; then check=(sha256sum --check --status); else check=(shasum -a 256 --check --status); fi
echo "$sum" | "${check[@]}" || fail "$name.tar.gz does not have the checksum that the release gives."
tar -xzf "$name.tar.gz"
program=$directory/$name/reprise

# Start it.
log=$RUNNER_TEMP/reprise.log
flags=(--memory --addr "$REPRISE_ACTION_ADDRESS" --region "$REPRISE_ACTION_REGION")
while IFS= read -r queue; do
	queue=$(xargs <<<"$queue") # without spaces around it
	[ -z "$queue" ] || flags+=(--queue "$queue")
done <<<"$REPRISE_ACTION_QUEUES"
read -ra more <<<"$REPRISE_ACTION_FLAGS"
nohup "$program" serve "${flags[@]}" ${more[@]+"${more[@]}"} >"$log" 2>&1 </dev/null &
server=$!
echo "$server" >"$RUNNER_TEMP/reprise.pid"
until grep -q '^SQS endpoint' "$log"; do
	kill -0 "$server" 2>/dev/null || {
		cat "$log"
		fail "The server did not start: its log is above."
	}
	sleep 0.1
done
"$program" health --wait 30s "$REPRISE_ACTION_ADDRESS" || {
	cat "$log"
	fail "The server does not work: its log is above."
}

# Tell the following steps.
{
	echo "AWS_ENDPOINT_URL_SQS=http://$REPRISE_ACTION_ADDRESS"
	echo "AWS_REGION=$REPRISE_ACTION_REGION"
	echo "AWS_DEFAULT_REGION=$REPRISE_ACTION_REGION"
	echo "AWS_ACCESS_KEY_ID=any"
	echo "AWS_SECRET_ACCESS_KEY=any"
} >>"$GITHUB_ENV"
{
	echo "endpoint=http://$REPRISE_ACTION_ADDRESS"
	echo "log=$log"
} >>"$GITHUB_OUTPUT"
dirname "$program" >>"$GITHUB_PATH"
