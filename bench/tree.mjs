// A directory tree that looks like source code and is the same on every machine.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const EXTENSIONS = ['ts', 'js', 'json', 'md', 'rs', 'py', 'css'];
const WORDS = 'const return await export class value result session message stream error parse update config'.split(
  ' ',
);

/** One file in this many holds the needle once. */
const NEEDLE_EVERY = 97;
/** One file in this many ends in .tsx. */
const TSX_EVERY = 50;

export const NEEDLE = 'NEEDLE_ALPHA';

function generator(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Makes `files` files below `root`, and a `.gitignore` that hides one more directory full of needles. */
export function makeTree(root, files) {
  const random = generator(1);
  const line = () => `${Array.from({ length: 4 + random(8) }, () => WORDS[random(WORDS.length)]).join(' ')}\n`;
  const lines = Array.from({ length: 1024 }, line);
  const made = new Set();
  const write = (directory, name, text) => {
    if (!made.has(directory)) mkdirSync(directory, { recursive: true });
    made.add(directory);
    writeFileSync(join(directory, name), text);
  };
  for (let i = 0; i < files; i++) {
    const text = Array.from({ length: 10 + random(60) }, () => lines[random(lines.length)]);
    if (i % NEEDLE_EVERY === 0) text[text.length >> 1] = `  const ${NEEDLE} = 42;\n`;
    const extension = i % TSX_EVERY === 0 ? 'tsx' : EXTENSIONS[i % EXTENSIONS.length];
    const directory = join(root, `package-${i % 40}`, `module-${Math.floor(i / 40) % 20}`);
    write(directory, `file-${i}.${extension}`, text.join(''));
  }
  for (let i = 0; i < files / 100; i++) write(join(root, 'generated'), `file-${i}.tsx`, `${NEEDLE}\n`);
  writeFileSync(join(root, '.gitignore'), 'generated/\n');
  mkdirSync(join(root, '.git'));
  return { needles: Math.ceil(files / NEEDLE_EVERY), tsx: Math.ceil(files / TSX_EVERY) };
}
