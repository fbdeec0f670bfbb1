// A message may name a file by its path, and Codex then reads it from the server's disk. Messages may come from a
// browser, so that is refused unless the app says that it trusts whoever writes them.

import { InvalidArgumentError } from '@ai-sdk/provider';

import { OPTION_KEYS } from './check-settings.js';

/** Throws where a message names a file of this machine. */
export function refuseLocalFiles(prompt: unknown): void {
  if (!Array.isArray(prompt)) return;
  for (const [index, message] of prompt.entries()) {
    refuseIn(message, `messages[${index}]`);
    const { content } = (message ?? {}) as { content?: unknown };
    if (!Array.isArray(content)) continue;
    for (const [at, part] of content.entries()) refuseIn(part, `messages[${index}].content[${at}]`);
  }
}

function refuseIn(value: unknown, place: string): void {
  if (value === null || typeof value !== 'object') return;
  const { data, image, url, providerOptions } = value as Record<string, unknown>;
  for (const address of [data, image, url, (data as { url?: unknown } | null | undefined)?.url]) {
    if (isFileUrl(address)) refuse(place, 'a `file:` address');
  }
  if (providerOptions === null || typeof providerOptions !== 'object') return;
  for (const key of OPTION_KEYS) {
    const own = (providerOptions as Record<string, unknown>)[key];
    if (own === null || typeof own !== 'object') continue;
    const { localPath, mentions, skills } = own as Record<string, unknown>;
    if (localPath !== undefined && localPath !== null) refuse(place, '`localPath`');
    if (mentions !== undefined && mentions !== null) refuse(place, '`mentions`');
    // A skill without a path is one that the server knows.
    if (!listOf(skills).every(isName)) refuse(place, 'a skill by its path');
  }
}

function isName(skill: unknown): boolean {
  return typeof skill === 'string' || (skill !== null && typeof skill === 'object' && Object.keys(skill).join() === 'name');
}

function isFileUrl(address: unknown): boolean {
  if (typeof address !== 'string' && !(address instanceof URL) && !hasHref(address)) return false;
  const text = typeof address === 'string' ? address : String((address as { href: unknown }).href);
  // Whatever readers of addresses pass over: signs below the space, tabs and line ends within.
  return /^file:/i.test(text.replace(/[\u0000-\u0020]/g, ''));
}

/** Test runners give each file a class `URL` of its own. */
function hasHref(value: unknown): boolean {
  return typeof (value as { href?: unknown } | null | undefined)?.href === 'string';
}

function listOf(value: unknown): unknown[] {
  if (value === undefined || value === null) return [];
  return Array.isArray(value) ? value : [value];
}

function refuse(place: string, what: string): never {
  throw new InvalidArgumentError({
    argument: place,
    message:
      `${place} names a file of this machine (${what}), and messages may not. Set \`allowLocalFiles: true\` only where ` +
      'nobody but your own code writes the messages',
  });
}
