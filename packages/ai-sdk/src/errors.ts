// What can go wrong, with Codex's own words.

import { APICallError } from '@ai-sdk/provider';

/** What went wrong, by a word that stays. */
export type BinderyErrorCode =
  | 'binary_not_found'
  | 'daemon_did_not_start'
  | 'daemon_ended'
  | 'stream_cut'
  | 'bad_server'
  | 'thread_not_allowed'
  | (string & {});

/** A fault of ours or of the daemon's, before a model was asked. */
export class BinderyError extends Error {
  /** Its class, by name. */
  override readonly name = 'BinderyError';
  constructor(
    message: string,
    /** What went wrong, by a word that stays. */
    readonly code: BinderyErrorCode,
    /** What can be done about it. */
    readonly hint?: string,
    options?: ErrorOptions,
  ) {
    super(hint === undefined ? message : `${message}\n${hint}`, options);
  }
}

/** Nobody answered at this address. */
export function unanswered(url: string, cause: unknown): BinderyError {
  const hint = 'The daemon may have ended. The next call starts a new one, but not where `server` names one: that must run.';
  return new BinderyError(`no answer from ${url}`, 'daemon_ended', hint, { cause });
}

/** A refusal of the daemon's: `application/problem+json`. */
export interface Problem {
  title?: string;
  detail?: string;
  code?: string;
  hint?: string;
  status?: number;
  retryable?: boolean;
}

/** The SDK's own error, so that its retries and its users find what they expect. */
export function errorOfProblem(url: string, status: number, body: string): APICallError {
  const problem = (parsed(body) ?? {}) as Problem;
  const words = problem.detail ?? problem.title ?? `the daemon answered ${status}`;
  return new APICallError({
    message: problem.hint === undefined ? words : `${words}\n${problem.hint}`,
    url,
    requestBodyValues: {},
    statusCode: status,
    responseBody: body,
    isRetryable: problem.retryable ?? (status === 429 || status === 503),
    data: problem,
  });
}

/** The error of an `error` part: Codex's text, kind and details. */
export interface TurnFault {
  message?: string;
  kind?: string;
  code?: string;
  httpStatus?: number | null;
  retryable?: boolean;
}

export function errorOfTurn(url: string, fault: unknown): APICallError {
  const { message, httpStatus, retryable } = (fault ?? {}) as TurnFault;
  return new APICallError({
    message: message ?? (typeof fault === 'string' ? fault : JSON.stringify(fault)),
    url,
    requestBodyValues: {},
    ...(typeof httpStatus === 'number' ? { statusCode: httpStatus } : {}),
    isRetryable: retryable ?? false,
    data: fault,
  });
}

/** JSON that another process wrote, or nothing; what is in it stays to be looked at. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
