import { parseSync } from '@swc/core'

/** The visited parts of a syntax tree. */
interface Node {
  type: string
  [key: string]: unknown
}

/**
 * The config of the only `createMachine` call in a TypeScript source, parsed without running it, as an editor does. It accepts
 * literals, lists, and objects with plain keys. Functions are allowed and omitted for keys that XState does not name: `context`,
 * `output` and an actor's `input`. Other values throw with their path.
 */
export function literalConfig(source: string): Record<string, unknown> {
  const calls = callsOf(parseSync(source, { syntax: 'typescript' }))
  const [call] = calls
  if (!call || calls.length > 1)
    throw new Error(`There are ${calls.length} calls of createMachine; one is wanted.`)
  const [first] = call.arguments as { expression: Node }[]
  if (!first) throw new Error('createMachine is called without a config.')
  return read(first.expression, 'config') as Record<string, unknown>
}

function callsOf(value: unknown): Node[] {
  if (typeof value !== 'object' || value === null) return []
  if (Array.isArray(value)) return value.flatMap(callsOf)
  const node = value as Node
  const inner = Object.values(node).flatMap(callsOf)
  return isCreateMachine(node) ? [node, ...inner] : inner
}

function isCreateMachine({ type, callee }: Node): boolean {
  if (type !== 'CallExpression') return false
  const { property, value } = callee as { property?: { value?: string }; value?: string }
  return (property?.value ?? value) === 'createMachine'
}

const functions = new Set(['context', 'output', 'input'])

function read(node: Node, path: string): unknown {
  switch (node.type) {
    case 'StringLiteral':
    case 'NumericLiteral':
    case 'BooleanLiteral':
      return node.value
    case 'NullLiteral':
      return null
    case 'ArrayExpression':
      return (node.elements as ({ spread: unknown; expression: Node } | null)[]).map((element, index) => {
        const at = `${path}[${index}]`
        if (!element || element.spread) throw new Error(`${at} is a spread or a hole.`)
        return read(element.expression, at)
      })
    case 'ObjectExpression':
      return Object.fromEntries((node.properties as Node[]).flatMap((property) => entry(property, path)))
    case 'ArrowFunctionExpression':
      if (functions.has(path.slice(path.lastIndexOf('.') + 1))) return undefined
      throw new Error(`${path} is a function; give it a name in setup().`)
    default:
      throw new Error(`${path} is a ${node.type}, which no editor can read.`)
  }
}

function entry(property: Node, path: string): [string, unknown][] {
  const key = property.key as { type: string; value: unknown } | undefined
  if (
    property.type !== 'KeyValueProperty' ||
    !key ||
    !['Identifier', 'StringLiteral', 'NumericLiteral'].includes(key.type)
  ) {
    throw new Error(`${path} has a ${key?.type ?? property.type}, where only plain keys can be read.`)
  }
  const name = String(key.value)
  const value = read(property.value as Node, `${path}.${name}`)
  return value === undefined ? [] : [[name, value]]
}
