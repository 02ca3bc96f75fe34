import type { Renderer } from './renderer.js'

/** `--json`: exactly one line, the RunResult. */
export const resultLine: Renderer = {
  event: () => '',
  result: (result) => jsonLine(result),
}

/** `--events`: one AgentEvent a line. */
export const eventLines: Renderer = {
  event: (event) => jsonLine(event),
  result: () => '',
}

export function jsonLine(value: unknown): string {
  return `${printableJson(JSON.stringify(value))}\n`
}

/** The same JSON, fit for a terminal: what JSON leaves as it is, but terminals obey, is escaped. */
export function printableJson(json: string): string {
  return json.replaceAll(
    /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
