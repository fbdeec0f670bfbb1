// Call options as JSON: bytes become base64, addresses become text, handles stay behind.

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

function jsonOf(value: unknown): unknown {
  if (value instanceof Uint8Array) return base64Of(value);
  if (value instanceof ArrayBuffer) return base64Of(new Uint8Array(value));
  if (value instanceof URL) return value.toString();
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map(jsonOf);
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, jsonOf(inner)]));
  }
  return value;
}

function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}
