// Tools of your app, called by Codex: node examples/tools.mjs

import { generateText, stepCountIs, tool } from 'ai';
import { codex } from '@bindery/ai-sdk';
import { z } from 'zod';

const stock = { apples: 12, pears: 3 };

const { text } = await generateText({
  model: codex(),
  prompt: 'How many apples and pears are left?',
  tools: {
    inStock: tool({
      description: 'How many of a fruit are in stock',
      inputSchema: z.object({ fruit: z.string() }),
      execute: async ({ fruit }) => stock[fruit] ?? 0,
    }),
  },
  stopWhen: stepCountIs(5),
});
console.log(text);
