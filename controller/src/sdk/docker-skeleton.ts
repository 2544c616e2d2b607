import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';

// The download of `wsk sdk install docker`: the folder that the client expects, with an example action.

const readme = `# An action in a Docker image

An action may be any program. This folder makes one of \`example.c\`; put your own in its place.

The image builds on \`openwhisk/dockerskeleton\`, whose server starts the program \`/action/exec\` for every invocation:

- its last argument (and its standard input) is a JSON object, the action's arguments;
- the last line that it prints is the result, a JSON object; what it prints before is the log;
- the environment has \`__OW_NAMESPACE\`, \`__OW_ACTIVATION_ID\` and the other \`__OW_\` variables.

## Build it, and create the action

    ./buildAndPush.sh YOUR_DOCKER_ID/hello
    wsk action create hello --docker YOUR_DOCKER_ID/hello
    wsk action invoke hello --result --param name Ada

## Without Docker

A program that needs nothing but the C library can be an action as it is:

    cc -O2 -static -o exec example.c
    zip exec.zip exec
    wsk action create hello exec.zip --native
    wsk action invoke hello --result --param name Ada
`;

// OpenWhisk's own test of its client expects this image in the second line.
const dockerfile = `# An action of a program that is compiled into its image.
FROM openwhisk/dockerskeleton
# The image's server runs /action/exec for every invocation. The compiler leaves with the layer that needed it.
COPY example.c /action/example.c
RUN apk add --no-cache --virtual .compiler gcc libc-dev \\
 && gcc -O2 -o /action/exec /action/example.c \\
 && apk del .compiler
`;

const example = String.raw`#include <stdio.h>

/* Answers with its arguments: the last word of the command line, which is a JSON object. */
int main(int count, char **words)
{
    const char *arguments = count > 1 ? words[count - 1] : "{}";

    printf("This line goes to the log.\n");
    printf("{\"message\": \"Hello from a C program\", \"arguments\": %s}\n", arguments);
    return 0;
}
`;

const buildAndPush = String.raw`#!/bin/sh
# Builds the image and pushes it to where the platform pulls images from.
set -eu

if [ $# -ne 1 ]; then
  echo "usage: $0 YOUR_DOCKER_ID/NAME" >&2
  exit 2
fi

cd "$(dirname "$0")"
docker build --tag "$1" .
docker push "$1"
`;

/** The archive `blackbox.tar.gz`. */
export async function dockerSkeleton(): Promise<Buffer> {
  const folder = 'dockerSkeleton';
  return gzipSync(
    await writeTar([
      { name: folder, mode: 0o755 },
      { name: `${folder}/README.md`, mode: 0o644, content: readme },
      { name: `${folder}/Dockerfile`, mode: 0o644, content: dockerfile },
      { name: `${folder}/example.c`, mode: 0o644, content: example },
      { name: `${folder}/buildAndPush.sh`, mode: 0o755, content: buildAndPush },
    ]),
  );
}

/** A file, or a folder if it has no content. */
interface TarFile {
  name: string;
  mode: number;
  content?: string;
}

/**
 * A tar archive (POSIX ustar) of these files. All files are dated 1 January 1970, so that equal files make equal archives.
 */
async function writeTar(files: readonly TarFile[]): Promise<Buffer> {
  const archive = pack();
  for (const { name, mode, content } of files) {
    const isFolder = content === undefined;
    const type = isFolder ? 'directory' : 'file';
    archive.entry({ name: isFolder ? `${name}/` : name, mode, type, mtime: new Date(0) }, content);
  }
  archive.finalize();
  return buffer(archive);
}
