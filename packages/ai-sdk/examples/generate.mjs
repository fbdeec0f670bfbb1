// One question, one answer: node examples/generate.mjs

import { generateText } from 'ai';
import { codex } from '@bindery/ai-sdk';

const { text, usage } = await generateText({ model: codex(), prompt: 'What is this project about?' });
console.log(text);
console.log(`${usage.totalTokens} tokens`);
