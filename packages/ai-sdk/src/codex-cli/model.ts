// A model that takes the other package's options of a call, and gives its metadata under that package's key too.

import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3GenerateResult,
  LanguageModelV3StreamPart,
  LanguageModelV3StreamResult,
} from '@ai-sdk/provider';

import { checkNames } from '../check-settings.js';
import type { CodexProvider } from '../provider.js';
import { APP_SERVER_NAMES, EXEC_NAMES, type CliSettings } from './settings.js';
import { answersOf, ownToolsOf, threadOf, warnIgnored } from './translate.js';

/** Where the other package has its options and metadata. */
export type MovedKey = 'codex-cli' | 'codex-app-server';

export class MovedModel implements LanguageModelV3 {
  readonly specificationVersion: 'v3';
  readonly supportedUrls: LanguageModelV3['supportedUrls'];
  readonly #model: LanguageModelV3;
  /** The thread of the last call, for `threadMode: 'persistent'`. */
  #thread: string | undefined;

  constructor(
    codex: CodexProvider,
    readonly modelId: string,
    readonly settings: CliSettings,
    readonly provider: MovedKey,
  ) {
    this.#model = codex(modelId, {
      thread: threadOf(settings, provider === 'codex-cli'),
      tools: ownToolsOf(settings) ?? {},
    });
    this.specificationVersion = this.#model.specificationVersion;
    this.supportedUrls = this.#model.supportedUrls;
  }

  async doGenerate(options: LanguageModelV3CallOptions): Promise<LanguageModelV3GenerateResult> {
    const result = await this.#model.doGenerate(this.#translated(options));
    return { ...result, ...named(result.providerMetadata, this.provider) };
  }

  async doStream(options: LanguageModelV3CallOptions): Promise<LanguageModelV3StreamResult> {
    const result = await this.#model.doStream(this.#translated(options));
    const key = this.provider;
    const alias = new TransformStream<LanguageModelV3StreamPart, LanguageModelV3StreamPart>({
      transform: (part, controller) => {
        controller.enqueue(part.type === 'finish' ? { ...part, ...named(part.providerMetadata, key) } : part);
      },
    });
    return { ...result, stream: result.stream.pipeThrough(alias) };
  }

  #translated(options: LanguageModelV3CallOptions): LanguageModelV3CallOptions {
    const { [this.provider]: call = {}, ...others } = options.providerOptions ?? {};
    const asked = call as CliSettings;
    checkNames(asked, this.provider === 'codex-cli' ? EXEC_NAMES : APP_SERVER_NAMES, `providerOptions.${this.provider}`);
    warnIgnored(asked);
    const settings = merged(this.settings, asked);
    const threadId = asked.threadId ?? asked.resume ?? settings.resume ?? (settings.threadMode === 'persistent' ? this.#thread : undefined);
    const { onSession, ...answers } = answersOf(settings);
    const own = {
      ...threadOf(settings, this.provider === 'codex-cli'),
      ...answers,
      ...(threadId !== undefined && { threadId }),
      onSession: (session: Parameters<NonNullable<typeof onSession>>[0]) => {
        this.#thread = session.threadId;
        onSession?.(session);
      },
      ...others['codex'],
    };
    const providerOptions = { ...others, codex: own } as unknown as NonNullable<LanguageModelV3CallOptions['providerOptions']>;
    const raw = settings.includeRawChunks === true ? { includeRawChunks: true } : {};
    return { ...options, ...raw, providerOptions };
  }
}

/** A call's own settings come first; servers, overrides and handlers are added to the model's. */
function merged(settings: CliSettings, call: CliSettings): CliSettings {
  return {
    ...settings,
    ...call,
    mcpServers: { ...settings.mcpServers, ...call.mcpServers },
    configOverrides: { ...settings.configOverrides, ...call.configOverrides },
    addDirs: [...(settings.addDirs ?? []), ...(call.addDirs ?? [])],
    serverRequests: { ...settings.serverRequests, ...call.serverRequests },
  };
}

type Metadata = LanguageModelV3GenerateResult['providerMetadata'];

function named(metadata: Metadata, key: MovedKey): { providerMetadata?: NonNullable<Metadata> } {
  const { codex } = metadata ?? {};
  return codex === undefined ? {} : { providerMetadata: { ...metadata, [key]: codex } };
}
