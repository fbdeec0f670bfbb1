// The package as it is published: everything that is exported says what it is, and what it promises lies in it.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import test from 'node:test';

import ts from 'typescript';

const require = createRequire(import.meta.url);
const folder = dirname(require.resolve('@bindery/ai-sdk/package.json'));
const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
const entries = Object.values(manifest.exports).filter((entry) => typeof entry === 'object');

/** Whoever points at a name in an editor is told what it is. */
function undocumented(files) {
  const program = ts.createProgram(files, { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext, skipLibCheck: true });
  const checker = program.getTypeChecker();
  const missing = new Set();
  const seen = new Set();
  let count = 0;
  const has = (node) => ts.getJSDocCommentsAndTags(node).some((doc) => doc.comment !== undefined);
  const members = (node, path) => {
    for (const member of node.members ?? []) {
      if (!ts.isPropertySignature(member) && !ts.isMethodSignature(member) && !ts.isPropertyDeclaration(member) && !ts.isMethodDeclaration(member)) continue;
      const name = `${path}.${member.name.getText()}`;
      count += 1;
      if (!has(member) && !name.includes('[MARK]') && !ts.isPrivateIdentifier(member.name)) missing.add(name);
      if (member.type !== undefined) literals(member.type, name);
    }
  };
  // What stands inside of a type without a name of its own.
  const literals = (type, path) => {
    if (ts.isTypeLiteralNode(type)) members(type, path);
    else if (!ts.isFunctionTypeNode(type)) ts.forEachChild(type, (child) => ts.isTypeNode(child) && literals(child, path));
  };
  const visit = (declaration, name) => {
    if (seen.has(declaration) || !declaration.getSourceFile().fileName.startsWith(folder)) return;
    seen.add(declaration);
    const documented = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
    count += 1;
    if (!has(documented)) missing.add(name);
    if (ts.isTypeAliasDeclaration(declaration)) literals(declaration.type, name);
    else members(declaration, name);
    for (const clause of declaration.heritageClauses ?? []) {
      for (const base of clause.types) {
        for (const found of checker.getTypeAtLocation(base).symbol?.declarations ?? []) visit(found, base.getText());
      }
    }
  };
  for (const file of files) {
    for (const symbol of checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file)))) {
      const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      for (const declaration of target.declarations ?? []) visit(declaration, symbol.name);
    }
  }
  return { missing: [...missing], count };
}

test('every exported name and setting is documented where an editor shows it', () => {
  const { missing, count } = undocumented(entries.map((entry) => join(folder, entry.import.types)));
  assert.ok(count > 200, `${count} names`);
  assert.equal(missing.join('\n'), '');
});

test('the package says what it is', () => {
  assert.ok(manifest.description.length > 20);
  assert.ok(manifest.keywords.length >= 5);
  assert.equal(manifest.license, 'Apache-2.0');
  assert.ok(manifest.engines.node);
  for (const name of ['README.md', 'LICENSE']) assert.ok(existsSync(join(folder, name)), name);
});

test('every way in leads to a file, with types, and can be required too', () => {
  for (const [name, entry] of Object.entries(manifest.exports)) {
    const files = typeof entry === 'string' ? [entry] : [entry.import, entry.require].flatMap(({ types, default: file }) => [types, file]);
    for (const file of files) assert.ok(existsSync(join(folder, file)), `${name}: ${file}`);
    assert.ok(require(join('@bindery/ai-sdk', name)));
  }
});

test('the examples that the README names are in the package', () => {
  const readme = readFileSync(join(folder, 'README.md'), 'utf8');
  const inside = readdirSync(join(folder, 'examples'));
  assert.ok(inside.length >= 9, inside.join());
  for (const file of inside) assert.ok(readme.includes(`\`${file.replace('.mjs', '')}\``), file);
});
