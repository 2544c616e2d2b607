import { runGpuwhisk } from './gpuwhisk-command.js';

// A reader that closes the pipe early (`gpuwhisk ... | head`) is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

process.exitCode = await runGpuwhisk(process.argv.slice(2), process.env);
