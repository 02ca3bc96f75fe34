import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const page = fileURLToPath(new URL('../../docs/mcp.md', import.meta.url))

/**
 * The lines in docs/mcp.md between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`. With
 * STATEWRIGHT_MCP_PAGE=write, updates the page with the recorded exchange, which must then be complete.
 */
export function blockOf(name: string, played: readonly string[]): string[] {
  const [begin, end] = [`<!-- bench:${name} -->`, `<!-- /bench:${name} -->`]
  const section = new RegExp(`${begin}[^]*?${end}`)
  if (process.env['STATEWRIGHT_MCP_PAGE'] === 'write') {
    const written = readFileSync(page, 'utf8').replace(section, () => [begin, ...played, end].join('\n'))
    writeFileSync(page, written)
  }
  const [block = ''] = section.exec(readFileSync(page, 'utf8')) ?? []
  return block.split('\n').slice(1, -1)
}

const words: Readonly<Record<string, string>> = {
  opened: 'the opened session',
  start: 'the message',
  'xstate.done.actor.model': 'the model’s response',
  CHILD_WAITING: 'the question',
  TOOL_OUTPUT: 'the answer to the question',
  APPROVE: 'the approval',
  TOOL_RESULT: 'the result of the tool',
}

/** A description of a log record's content. */
export function nameRecord({ data, type }: { data: string; type: string }): string {
  const { event } = JSON.parse(data) as { event?: { type: string } }
  const name = event?.type ?? type
  return words[name] ?? name
}
