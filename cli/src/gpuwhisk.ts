import { runGpuwhisk } from './gpuwhisk-command.js';

// A reader that closes the pipe early (`gpuwhisk ... | head`) is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

void runGpuwhisk(process.argv.slice(2), process.env).then((code) => {
  process.exitCode = code;
});
