// Call options as JSON: bytes become base64, addresses become text, handles stay behind.

import { isAnyArrayBuffer } from 'node:util/types';

/** The options of a call as the daemon reads them. */
export function jsonOfOptions(options: object): Record<string, unknown> {
  const entries = Object.entries(options).filter(([key]) => key !== 'abortSignal');
  return Object.fromEntries(entries.map(([key, value]) => [key, key === 'headers' ? namesOf(value) : jsonOf(value)]));
}

/** Headers are only warned of; their values may be secret and stay here. */
function namesOf(headers: unknown): Record<string, true> {
  const given = Object.entries(headers ?? {}).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name]) => [name, true as const]));
}

/** Nothing is asked for its class: test runners give each file classes of its own, `Uint8Array` among them. */
function jsonOf(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(jsonOf);
  if (ArrayBuffer.isView(value)) return base64Of(value.buffer, value.byteOffset, value.byteLength);
  if (isAnyArrayBuffer(value)) return base64Of(value, 0, value.byteLength);
  // Addresses and dates know how they are written.
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === 'function') return toJSON.call(value) as unknown;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, jsonOf(inner)]));
}

function base64Of(bytes: ArrayBufferLike, from: number, length: number): string {
  return Buffer.from(bytes, from, length).toString('base64');
}
