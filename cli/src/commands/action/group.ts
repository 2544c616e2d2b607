import type { Command } from '../command.js';
import { createCommand, updateCommand } from './create.js';
import { getCommand } from './get.js';
import { invokeCommand } from './invoke.js';
import { deleteCommand, listCommand } from './list.js';

/** `wsk action`. */
export const actionCommands: Command[] = [
  createCommand,
  deleteCommand,
  getCommand,
  invokeCommand,
  listCommand,
  updateCommand,
];
