// An answer in a shape of yours: node examples/structured-output.mjs

import { generateText, Output } from 'ai';
import { codex } from '@bindery/ai-sdk';
import { z } from 'zod';

const { output } = await generateText({
  model: codex(),
  prompt: 'Which languages is this project written in?',
  output: Output.object({ schema: z.object({ languages: z.array(z.string()), main: z.string() }) }),
});
console.log(`${output.main} of ${output.languages.join(', ')}`);
