// What `codex exec --json` prints, as the normalised stream, without a program between. Run: node stdout-mapper.mjs

import { spawn } from 'node:child_process';

import { createCodexStdoutMapper } from '@bindery/ai-sdk/stdout-mapper';

const mapper = createCodexStdoutMapper({ dialect: 'full' });
const write = (lines) => lines.forEach((line) => process.stdout.write(line));

const args = ['exec', '--json', '--skip-git-repo-check', 'Say hello in one short sentence.'];
const codex = spawn(process.env.BINDERY_CODEX ?? 'codex', args, { stdio: ['ignore', 'pipe', 'inherit'] });
codex.stdout.on('data', (chunk) => write(mapper.push(chunk)));
codex.on('close', (code, signal) => write(mapper.flush({ code, signal })));
