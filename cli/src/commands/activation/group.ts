import type { Command } from '../command.js';
import { getCommand } from './get.js';
import { listCommand } from './list.js';
import { logsCommand } from './logs.js';
import { pollCommand } from './poll.js';
import { resultCommand } from './result.js';

/** `wsk activation`. */
export const activationCommands: Command[] = [getCommand, listCommand, logsCommand, pollCommand, resultCommand];
