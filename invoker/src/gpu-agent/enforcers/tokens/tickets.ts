import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { shareClasses, type Share, type ShareClass } from '@gpuwhisk/common/gpu';

/** What a process shows to get its tokens: all processes that show the same one share them. */
export interface Ticket {
  id: string;
  device: string;
  slice?: string;
  share: Share;
}

const keyBytes = 32;
/** Of native/tokens/page.h, less the final zero. */
const maxTicketBytes = 511;

/**
 * The key in the file `path`, made if there is none: tickets outlive an agent, whose successor finds its clients by
 * them. Rejects if the file is no key.
 */
export async function openTicketKey(path: string): Promise<Buffer> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  try {
    await writeFile(path, randomBytes(keyBytes), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const key = await readFile(path);
  if (key.length !== keyBytes) throw new Error(`${path} is no key of ${keyBytes} bytes.`);
  return key;
}

const sign = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

/** A new ticket as text, without commas. Throws RangeError if it gets too long. */
export function issueTicket(key: Buffer, { device, slice, share }: Omit<Ticket, 'id'>): string {
  const { shareClass, smRequest, smLimit, memoryMiB, tokens } = share;
  const fields = [
    randomBytes(12).toString('base64url'),
    device,
    slice ?? '',
    shareClass,
    smRequest,
    smLimit,
    memoryMiB,
    tokens?.maxTokens ?? 0,
    tokens?.violation ?? 0,
  ];
  const body = Buffer.from(JSON.stringify(fields)).toString('base64url');
  const ticket = `${body}.${sign(key, body).toString('base64url')}`;
  if (ticket.length > maxTicketBytes) throw new RangeError(`The ticket for ${device} is too long.`);
  return ticket;
}

/** What a ticket says, or undefined if it was not issued with this key. */
export function readTicket(key: Buffer, text: string): Ticket | undefined {
  const [body = '', signature = ''] = text.split('.');
  const expected = sign(key, body);
  const given = Buffer.from(signature, 'base64url');
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  const [id, device, slice, shareClass, smRequest, smLimit, memoryMiB, maxTokens, violation] = JSON.parse(
    Buffer.from(body, 'base64url').toString(),
  ) as [string, string, string, ShareClass, number, number, number, number, number];
  if (!shareClasses.includes(shareClass)) return undefined;
  const tokens = { ...(maxTokens > 0 && { maxTokens }), ...(violation > 0 && { violation }) };
  return {
    id,
    device,
    ...(slice !== '' && { slice }),
    share: { shareClass, smRequest, smLimit, memoryMiB, ...(Object.keys(tokens).length > 0 && { tokens }) },
  };
}
