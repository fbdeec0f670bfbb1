// A picture in the question: node examples/images.mjs [picture.png]

import { readFile } from 'node:fs/promises';
import { generateText } from 'ai';
import { codex } from '@bindery/ai-sdk';

const red = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==';
const path = process.argv[2];
const picture = path ? await readFile(path) : Buffer.from(red, 'base64');

const { text } = await generateText({
  model: codex(),
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is in this picture?' },
        { type: 'file', mediaType: 'image/png', data: picture },
      ],
    },
  ],
});
console.log(text);
