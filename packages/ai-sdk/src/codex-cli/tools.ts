// Tools that the other package serves to Codex over a local MCP server. Here they run as the provider's own.

import type { ProviderTool } from '../settings.js';

/** A tool as it is declared there. */
export interface LocalToolDefinition<INPUT = never> {
  /** Its name. */
  name: string;
  /** What it is for. */
  description: string;
  /** What it takes: a schema of zod's (4.2 or later), or any other that tells its JSON Schema. */
  parameters: unknown;
  /** Does the work. */
  execute: (input: INPUT) => unknown;
}

/** A tool with its JSON Schema. */
export interface LocalTool {
  /** Its name. */
  name: string;
  /** What it is for. */
  description: string;
  /** JSON Schema of what it takes. */
  inputSchema: Record<string, unknown>;
  /** Does the work. */
  execute: (input: unknown) => unknown;
}

const MARK: unique symbol = Symbol.for('bindery.sdk-mcp-server');

/** Tools under one name, for `mcpServers`. */
export interface SdkMcpServer {
  readonly [MARK]: true;
  /** Its name. */
  readonly name: string;
  /** Its tools. */
  readonly tools: LocalTool[];
}

/** A tool; its input is checked before it runs. */
export function tool<INPUT>({ name, description, parameters, execute }: LocalToolDefinition<INPUT>): LocalTool {
  const inputSchema = schemaOf(parameters, name);
  const { parse } = parameters as { parse?: (input: unknown) => unknown };
  const checked = (input: unknown): INPUT => (parse === undefined ? input : parse.call(parameters, input)) as INPUT;
  return { name, description, inputSchema, execute: (input) => execute(checked(input)) };
}

/** Tools under one name. They run in your process while a call is open; no server is started. */
export function createSdkMcpServer({ name, tools }: { name: string; cacheKey?: string; tools: LocalTool[] }): SdkMcpServer {
  return { [MARK]: true, name, tools };
}

export function isSdkServer(server: object): server is SdkMcpServer {
  return MARK in server;
}

/** The tools of all these servers. */
export function toolsOf(servers: SdkMcpServer[]): Record<string, ProviderTool> {
  const found: Record<string, ProviderTool> = {};
  for (const { name, description, inputSchema, execute } of servers.flatMap(({ tools }) => tools)) {
    if (Object.hasOwn(found, name)) throw new TypeError(`mcpServers: two tools are named \`${name}\``);
    found[name] = { description, inputSchema, execute: (input) => execute(input) };
  }
  return found;
}

function schemaOf(parameters: unknown, name: string): Record<string, unknown> {
  const given = parameters as {
    '~standard'?: { jsonSchema?: { input?: (options: { target: string }) => Record<string, unknown> } };
    toJSONSchema?: () => Record<string, unknown>;
    type?: unknown;
  };
  const standard = given['~standard']?.jsonSchema;
  if (standard?.input !== undefined) return standard.input({ target: 'draft-07' });
  if (given.toJSONSchema !== undefined) return given.toJSONSchema();
  if (given['~standard'] === undefined && given.type === 'object') return parameters as Record<string, unknown>;
  throw new TypeError(`tool \`${name}\`: its parameters do not tell their JSON Schema; zod does since 4.2`);
}
