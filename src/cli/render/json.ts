import type { Renderer } from './renderer.js'

/** `--json`: exactly one line, the RunResult. */
export const resultLine: Renderer = {
  event: () => '',
  result: (result) => `${JSON.stringify(result)}\n`,
}

/** `--events`: one AgentEvent a line. */
export const eventLines: Renderer = {
  event: (event) => `${JSON.stringify(event)}\n`,
  result: () => '',
}
