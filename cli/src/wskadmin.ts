import { runAdmin } from './wskadmin/run.js';

// A reader that closes the pipe early (`wskadmin ... | head`) is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

process.exitCode = await runAdmin(process.argv.slice(2), process.env);
