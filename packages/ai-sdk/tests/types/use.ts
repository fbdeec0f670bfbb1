// The provider as a TypeScript app uses it; only its types are looked at.

import { generateText, stepCountIs, streamText, tool, type LanguageModel } from 'ai';
import { BinderyError, codex, codexRun, createCodex, createCodexAppServer, type CallSettings } from '@bindery/ai-sdk';
import { z } from 'zod';

const provider = createCodex({
  defaultModel: 'gpt-5.5',
  thread: { cwd: '/project', sandbox: 'workspace-write', approvalPolicy: 'on-request' },
  onCommandApproval: ({ command, cwd }) => (command.startsWith('git ') && cwd === '/project' ? 'accept' : 'decline'),
  onSession: ({ steer, interrupt }) => void Promise.all([steer('faster'), interrupt()]),
});
const guarded = provider(undefined, { owner: 'ann', authorizeThread: ({ threadId, signed }) => signed && threadId !== '' });
const models: LanguageModel[] = [guarded, codex(), provider('gpt-5.5'), provider.languageModel('x'), provider.chat('x'), createCodexAppServer()('x')];

export async function use(): Promise<string> {
  const options = { threadId: 't', fork: true, effort: 'high' } satisfies CallSettings;
  const { text } = await generateText({
    model: models[0]!,
    prompt: 'hi',
    tools: {
      add: tool({ inputSchema: z.object({ a: z.number() }), execute: ({ a }) => a + 1 }),
      worker: codexRun({ cwd: '/project' }),
    },
    providerOptions: { codex: options },
    stopWhen: stepCountIs(3),
  }).catch((error: unknown) => {
    if (error instanceof BinderyError) return { text: error.code };
    throw error;
  });
  for await (const piece of streamText({ model: provider(), prompt: text }).textStream) console.log(piece);
  return (await provider.listModels()).map(({ id }) => id).join();
}
