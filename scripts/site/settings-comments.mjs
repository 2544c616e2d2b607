// Comments of the settings in common/src: TypeScript does not keep them in what it compiles.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { root } from '../fresh.mjs';

const files = ['config-schema.ts', 'procure-schema.ts', 'token-issuer.ts'];

/** Comments of all settings by path (`gpu.search.idleMs`), for the schema that the variable holds. */
export function settingComments(variable) {
  const declared = new Map();
  for (const name of files) {
    const text = readFileSync(join(root, 'common', 'src', name), 'utf8');
    const source = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true);
    source.forEachChild((statement) => {
      if (!ts.isVariableStatement(statement)) return;
      for (const { name, initializer } of statement.declarationList.declarations)
        if (initializer !== undefined) declared.set(name.text, initializer);
    });
  }
  const comments = new Map();
  const schema = declared.get(variable);
  if (schema === undefined) throw new Error(`common/src has no ${variable}.`);
  collect(schema, '', declared, comments);
  return comments;
}

function collect(node, prefix, declared, comments) {
  for (const shape of shapesOf(node, declared)) {
    for (const property of shape.properties) {
      if (!ts.isPropertyAssignment(property)) continue;
      const path = prefix + property.name.text;
      const comment = ts
        .getJSDocCommentsAndTags(property)
        .map((doc) => ts.getTextOfJSDocComment(doc.comment) ?? '')
        .join(' ');
      if (comment !== '') comments.set(path, comment.replace(/\s+/g, ' '));
      collect(property.initializer, `${path}.`, declared, comments);
    }
  }
}

/** The object literals that an expression passes to strictObject and object, its own variables included. */
function shapesOf(node, declared) {
  if (ts.isIdentifier(node)) return declared.has(node.text) ? shapesOf(declared.get(node.text), declared) : [];
  if (ts.isPropertyAccessExpression(node)) return shapesOf(node.expression, declared);
  if (!ts.isCallExpression(node)) return [];
  const called = node.expression;
  const isShape = ts.isPropertyAccessExpression(called) && /^(strictObject|object)$/.test(called.name.text);
  if (isShape) return node.arguments.filter(ts.isObjectLiteralExpression);
  return shapesOf(called, declared);
}
