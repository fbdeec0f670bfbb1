// The names and settings that users of `ai-sdk-provider-codex-cli` have in their code.

import { APICallError, NoSuchModelError, UnsupportedFunctionalityError, type LanguageModelV3 } from '@ai-sdk/provider';

import { MovedModel, type MovedKey } from './codex-cli/model.js';
import { APP_SERVER_NAMES, EXEC_NAMES, type CliSettings } from './codex-cli/settings.js';
import { warnIgnored } from './codex-cli/translate.js';
import { checkNames } from './check-settings.js';
import { createCodex } from './provider.js';
import type { ModelInfo } from './settings.js';

export { createSdkMcpServer, tool, type LocalTool, type LocalToolDefinition, type SdkMcpServer } from './codex-cli/tools.js';
export type { CliMcpServer, CliSettings, ServerRequests } from './codex-cli/settings.js';

/** A provider with the methods of the other package's. */
export interface CodexCliProvider {
  (modelId: string, settings?: CliSettings): LanguageModelV3;
  /** A model by its name. */
  languageModel(modelId: string, settings?: CliSettings): LanguageModelV3;
  /** The same. */
  chat(modelId: string, settings?: CliSettings): LanguageModelV3;
  /** Always throws: Codex has none. */
  embeddingModel(modelId: string): never;
  /** Always throws: Codex has none. */
  imageModel(modelId: string): never;
  /** What Codex offers. */
  listModels(): Promise<ModelList>;
  /** Ends the provider's calls and, where no other provider uses it, the daemon. */
  close(): Promise<void>;
  /** The same. */
  dispose(): Promise<void>;
}

/** What Codex offers. */
export interface ModelList {
  /** All models. */
  models: ModelInfo[];
  /** The one that is used when none is named. */
  defaultModel?: ModelInfo;
}

/** What a provider is made with. */
export interface CodexCliProviderSettings {
  /** Settings of its models, which a model's own come before. */
  defaultSettings?: CliSettings;
}

/** Efforts that Codex knows. */
export const CODEX_REASONING_EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', 'ultra'] as const;

/** A provider from the settings of the other package's app-server mode. */
export function createCodexAppServer(options: CodexCliProviderSettings = {}): CodexCliProvider {
  return providerOf(options, 'codex-app-server', APP_SERVER_NAMES);
}

/** A provider from the settings of the other package's exec mode. It runs as every other here, so text is streamed. */
export function createCodexExec(options: CodexCliProviderSettings = {}): CodexCliProvider {
  return providerOf(options, 'codex-cli', EXEC_NAMES);
}

/** The same, under its other name. */
export const createCodexCli = createCodexExec;

/** The provider with nothing set. */
export const codexAppServer: CodexCliProvider = createCodexAppServer();

/** The provider with nothing set. */
export const codexExec: CodexCliProvider = createCodexExec();

/** The same, under its other name. */
export const codexCli: CodexCliProvider = codexExec;

/** What Codex offers. */
export async function listModels(options: Pick<CliSettings, 'codexPath' | 'env' | 'cwd'> = {}): Promise<ModelList> {
  const provider = createCodexAppServer({ defaultSettings: options });
  try {
    return await provider.listModels();
  } finally {
    await provider.close();
  }
}

/** Whether Codex was not let in by the model's provider. */
export function isAuthenticationError(error: unknown): boolean {
  if (!APICallError.isInstance(error)) return false;
  return error.statusCode === 401 || (error.data as { kind?: unknown } | undefined)?.kind === 'unauthorized';
}

/** Whether something is not to be had. */
export function isUnsupportedFeatureError(error: unknown): boolean {
  return UnsupportedFunctionalityError.isInstance(error);
}

function providerOf({ defaultSettings = {}, ...more }: CodexCliProviderSettings, key: MovedKey, names: readonly string[]): CodexCliProvider {
  checkNames(more, ['defaultSettings'], key);
  checkNames(defaultSettings, names, 'defaultSettings');
  warnIgnored(defaultSettings);
  const codex = createCodex({
    ...(defaultSettings.codexPath !== undefined && { codex: defaultSettings.codexPath }),
    ...(defaultSettings.env !== undefined && { env: defaultSettings.env }),
  });
  const languageModel = (modelId: string, settings: CliSettings = {}): LanguageModelV3 => {
    checkNames(settings, names, 'settings');
    warnIgnored(settings);
    return new MovedModel(codex, modelId, { ...defaultSettings, ...settings }, key);
  };
  const none = (modelType: 'embeddingModel' | 'imageModel') => (modelId: string): never => {
    throw new NoSuchModelError({ modelId, modelType });
  };
  return Object.assign((modelId: string, settings?: CliSettings) => languageModel(modelId, settings), {
    specificationVersion: codex.specificationVersion,
    languageModel,
    chat: languageModel,
    embeddingModel: none('embeddingModel'),
    imageModel: none('imageModel'),
    listModels: async () => {
      const models = await codex.listModels();
      const defaultModel = models.find(({ isDefault }) => isDefault);
      return { models, ...(defaultModel && { defaultModel }) };
    },
    close: () => codex.shutdown(),
    dispose: () => codex.shutdown(),
  });
}
