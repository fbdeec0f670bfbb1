// The provider: models by name, and the end of it all.

import { NoSuchModelError, type LanguageModelV3 } from '@ai-sdk/provider';

import { ask } from './ask.js';
import { placeOf, prepare } from './call.js';
import { checkSettings } from './check-settings.js';
import { Lease } from './lease.js';
import { installedSpecification } from './major.js';
import { CodexLanguageModel } from './model.js';
import type { CodexSettings, ModelInfo } from './settings.js';

/** A model, in the type that every SDK since ai@6 takes. */
export type CodexModel = LanguageModelV3;

/** Models by name. */
export interface CodexProvider {
  (modelId?: string, settings?: CodexSettings): CodexModel;
  /** The specification of its models, as far as it is known before one is asked for. */
  readonly specificationVersion: 'v3';
  /** A model by its name; without one the default of the settings, else of Codex. */
  languageModel(modelId?: string, settings?: CodexSettings): CodexModel;
  /** The same. */
  chat(modelId?: string, settings?: CodexSettings): CodexModel;
  /** Always throws: Codex has none. */
  embeddingModel(modelId: string): never;
  /** Always throws: Codex has none. */
  imageModel(modelId: string): never;
  /** What Codex offers with these settings. */
  listModels(): Promise<ModelInfo[]>;
  /** Starts Codex and a thread ahead, so that the first conversation need not wait for them. */
  prepare(modelId?: string, settings?: CodexSettings): Promise<void>;
  /**
   * Cuts the provider's calls that are on their way, and ends its daemon and everything under it, unless another
   * provider of the process has used that and was not shut down. A later call starts a new one.
   */
  shutdown(): Promise<void>;
}

/** What the daemon takes for "whatever Codex is set to". */
const DEFAULT = 'default';

/**
 * A provider with settings of its own. Throws an `InvalidArgumentError` of the SDK's where one is unknown or has a wrong
 * value.
 */
export function createCodex(settings: CodexSettings = {}): CodexProvider {
  checkSettings(settings, 'createCodex');
  // Anew for each model: one provider may be used by packages that have different majors of `ai`.
  const specificationOf = (more: CodexSettings): 'v3' | 'v4' =>
    more.specification ?? settings.specification ?? installedSpecification();
  const lease = new Lease();
  const languageModel = (modelId?: string, more: CodexSettings = {}): CodexModel => {
    checkSettings(more, 'settings');
    const name = modelId ?? settings.defaultModel ?? DEFAULT;
    return new CodexLanguageModel(name, merged(settings, more), specificationOf(more), lease);
  };
  const none = (modelType: 'embeddingModel' | 'imageModel') => (modelId: string): never => {
    throw new NoSuchModelError({ modelId, modelType });
  };
  return Object.assign((modelId?: string, more?: CodexSettings) => languageModel(modelId, more), {
    specificationVersion: specificationOf({}) as 'v3',
    languageModel,
    chat: languageModel,
    embeddingModel: none('embeddingModel'),
    imageModel: none('imageModel'),
    listModels: () => listModels(settings, lease),
    prepare: async (modelId?: string, more: CodexSettings = {}) => {
      checkSettings(more, 'settings');
      const name = modelId ?? settings.defaultModel ?? DEFAULT;
      await prepare(specificationOf(more), name, merged(settings, more), lease);
    },
    shutdown: () => lease.end(settings),
  });
}

function merged(settings: CodexSettings, more: CodexSettings): CodexSettings {
  const thread = { ...settings.thread, ...more.thread };
  return { ...settings, ...more, thread, tools: { ...settings.tools, ...more.tools } };
}

async function listModels(settings: CodexSettings, lease: Lease): Promise<ModelInfo[]> {
  const response = await ask(await lease.server(settings), 'POST', '/v1/models', { settings: placeOf(settings) });
  return ((await response.json()) as { models: ModelInfo[] }).models;
}

/** The provider with nothing set: Codex as this machine has it. */
export const codex: CodexProvider = createCodex();
