import { readFileSync } from 'node:fs'
import { parseSync } from '@swc/core'
import { root } from './snippets.js'

/** A test in a file, with its parents: `describe › name`. */
export interface NamedTest {
  name: string
  isSkipped: boolean
}

interface Node {
  type: string
  [key: string]: unknown
}

/** The tests of a file with their source names. Parameterized names contain `%s`, `$name` or `${…}`. */
export function testsOf(file: string): NamedTest[] {
  const source = readFileSync(root + file, 'utf8')
  const module = parseSync(source, { syntax: 'typescript', target: 'es2022' })
  return within(module as unknown as Node, [], false)
}

function within(node: unknown, path: string[], isSkipped: boolean): NamedTest[] {
  if (Array.isArray(node)) return node.flatMap((child) => within(child, path, isSkipped))
  if (typeof node !== 'object' || node === null) return []
  const call = node as Node
  const block = call.type === 'CallExpression' ? blockOf(call) : null
  if (block === null) return Object.values(call).flatMap((child) => within(child, path, isSkipped))
  const here = [...path, block.title]
  const skipped = isSkipped || block.isSkipped
  if (block.kind === 'test') return [{ name: here.join(' › '), isSkipped: skipped }]
  return within(block.body, here, skipped)
}

/** `describe('…', …)`, `it.each(…)('…', …)`, `test.skip('…', …)` and similar calls. */
function blockOf(call: Node) {
  const words = wordsOf(call.callee as Node)
  const [first = ''] = words
  const kind = /^(?:[xf]?describe|longDescribe)$/.test(first)
    ? 'describe'
    : /^([xf]?(it|test)|longTest|wholeTest)$/.test(first)
      ? 'test'
      : null
  const [title, body] = (call.arguments as { expression: Node }[]).map(({ expression }) => expression)
  const text = title && textOf(title)
  if (kind === null || typeof text !== 'string') return null
  const isSkipped = first.startsWith('x') || words.some((word) => word === 'skip' || word === 'todo')
  return { kind, title: text, isSkipped, body }
}

function wordsOf(callee: Node): string[] {
  if (callee.type === 'Identifier') return [callee.value as string]
  if (callee.type === 'MemberExpression') {
    return [...wordsOf(callee.object as Node), (callee.property as Node).value as string]
  }
  // (isWindows ? test.skip : test)(title, body): skipped on some platforms only
  if (callee.type === 'ParenthesisExpression') return wordsOf(callee.expression as Node)
  if (callee.type === 'ConditionalExpression') return wordsOf(callee.alternate as Node)
  // it.each(cases)(title, body), it.each`table`(title, body)
  if (callee.type === 'CallExpression') return wordsOf(callee.callee as Node)
  return callee.type === 'TaggedTemplateExpression' ? wordsOf(callee.tag as Node) : []
}

function textOf(node: Node): string | null {
  if (node.type === 'StringLiteral') return node.value as string
  if (node.type !== 'TemplateLiteral') return null
  const pieces = (node.quasis as { cooked: string }[]).map(({ cooked }) => cooked)
  return pieces.join('${…}')
}
