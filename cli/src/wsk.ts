import { run } from './run.js';

// A reader that closes the pipe early (`wsk ... | head`) is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

void run(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
});
