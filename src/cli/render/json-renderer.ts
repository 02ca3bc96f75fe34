import type { Renderer } from './renderer.js'

/** `--json`: exactly one line, the RunResult. */
export const resultRenderer: Renderer = {
  renderEvent: () => '',
  renderResult: (result) => formatJsonLine(result),
}

/** `--events`: one AgentEvent a line. */
export const eventRenderer: Renderer = {
  renderEvent: (event) => formatJsonLine(event),
  renderResult: () => '',
}

export function formatJsonLine(value: unknown): string {
  return `${escapeJson(JSON.stringify(value))}\n`
}

/** Escapes the control characters that JSON allows and terminals obey. */
export function escapeJson(json: string): string {
  return json.replaceAll(
    /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
