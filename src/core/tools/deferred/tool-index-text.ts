import type { Tool, ToolSearch } from '../tool.js'

/** Characters of the list of deferred tools, however many there are. */
const maxIndexChars = 10_000

/** Characters of the line that says how many more there are. */
const maxRestChars = 60

/** From so many characters on, a piece of a description says something. */
const minLineChars = 12

/**
 * The list of deferred tools, for the instructions: names, and of each description as much of its first line as there is room for.
 * It does not change when tools are loaded, so that requests keep their beginning.
 */
export function writeIndex(deferred: readonly Tool[], loading: ToolSearch['loading']): string {
  if (deferred.length === 0) return ''
  const how =
    loading === 'append'
      ? 'Load what you need with tool_search'
      : 'Load what you need with tool_search, and call it by call_tool'
  const head = `There are more tools, which are not loaded. ${how}:`
  const room = maxIndexChars - head.length - maxRestChars
  const each = Math.floor(room / deferred.length) - '- : \n'.length
  const lines: string[] = []
  let size = 0
  for (const { name, description } of deferred) {
    const words = cutLine(description, each - name.length)
    const line = `- ${name}${words === '' ? '' : `: ${words}`}`
    size += line.length + 1
    if (size > room) {
      lines.push(`- and ${deferred.length - lines.length} more, which tool_search finds`)
      break
    }
    lines.push(line)
  }
  return [head, ...lines].join('\n')
}

function cutLine(description: string, most: number): string {
  // The mark of an MCP server says whose words the whole description is; here, each would have it.
  const [line = ''] = description.replace(/^\[[^\]]*\]\s*/, '').split('\n')
  const words = line.trim()
  if (words.length <= most) return words
  return most < minLineChars ? '' : `${words.slice(0, most - 1).trimEnd()}…`
}
