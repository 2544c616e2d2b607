import { runAdmin } from './wskadmin/run.js';

// A reader that closes the pipe early (`wskadmin ... | head`) is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

void runAdmin(process.argv.slice(2), process.env).then((code) => {
  process.exitCode = code;
});
