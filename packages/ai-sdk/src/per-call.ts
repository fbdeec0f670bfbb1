// Callbacks and trust among the options of one call: they come before the provider's, and stay in this process.

import type { CodexSettings } from './settings.js';

const CALLBACKS = [
  'onCommandApproval',
  'onFileChangeApproval',
  'onPermissions',
  'onToolUserInput',
  'onElicitation',
  'onSession',
  'onCallbackError',
] as const;

const TRUST = ['owner', 'allowLocalFiles'] as const;

/** A call's options without what stays here, and the settings with it. */
export function perCall<T extends object>(settings: CodexSettings, options: T): { settings: CodexSettings; options: T } {
  const { providerOptions } = options as { providerOptions?: Record<string, unknown> };
  const own = providerOptions?.['codex'] as Record<string, unknown> | null | undefined;
  if (own === null || typeof own !== 'object') return { settings, options };
  const given = [...CALLBACKS, ...TRUST].filter((name) => own[name] !== undefined && own[name] !== null);
  if (given.length === 0) return { settings, options };
  const rest = Object.fromEntries(Object.entries(own).filter(([name]) => !given.some((known) => known === name)));
  return {
    settings: { ...settings, ...Object.fromEntries(given.map((name) => [name, own[name]])) },
    options: { ...options, providerOptions: { ...providerOptions, codex: rest } },
  };
}
