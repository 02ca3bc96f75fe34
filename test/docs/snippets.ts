import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** The documents whose code is verified. */
export const documents = [
  'README.md',
  'SKILL.md',
  'docs/README.md',
  'docs/a-run-as-a-test.md',
  'docs/agui.md',
  'docs/architecture.md',
  'docs/bring-your-own-loop.md',
  'docs/chat.md',
  'docs/choose.md',
  'docs/check-an-agent.md',
  'docs/command-line.md',
  'docs/compare-machines.md',
  'docs/concepts.md',
  'docs/configuration.md',
  'docs/conformance.md',
  'docs/context.md',
  'docs/control.md',
  'docs/principals.md',
  'docs/embedding.md',
  'docs/evaluations.md',
  'docs/events.md',
  'docs/express.md',
  'docs/fleet.md',
  'docs/guarantees.md',
  'docs/guardrails.md',
  'docs/guardrails-measured.md',
  'docs/guards-of-your-own.md',
  'docs/handoffs.md',
  'docs/hono.md',
  'docs/hosts.md',
  'docs/deferred-tools.md',
  'docs/mcp.md',
  'docs/memory.md',
  'docs/migrating.md',
  'docs/models.md',
  'docs/next.md',
  'docs/node-http.md',
  'docs/performance.md',
  'docs/presets.md',
  'docs/properties.md',
  'docs/rehearsals.md',
  'docs/replay-and-fork.md',
  'docs/resume.md',
  'docs/retrofit.md',
  'docs/runs.md',
  'docs/runtimes.md',
  'docs/scale.md',
  'docs/sessions.md',
  'docs/shields.md',
  'docs/skills.md',
  'docs/approvals.md',
  'docs/sleep.md',
  'docs/starters.md',
  'docs/stately.md',
  'docs/steps.md',
  'docs/stores.md',
  'docs/structured-output.md',
  'docs/studio.md',
  'docs/sub-agents.md',
  'docs/telemetry.md',
  'docs/test-your-own-agent.md',
  'docs/tools.md',
  'docs/versioning.md',
  'examples/chat-tenants/README.md',
  'examples/coding-agent/README.md',
  'visualizations/README.md',
]

/** A fenced code block of a document. */
export interface Snippet {
  /** `README.md › The states`. A second block under the same heading is `… (2)`. */
  id: string
  lang: string
  code: string
}

export function snippetsOf(document: string, markdown = readFileSync(root + document, 'utf8')): Snippet[] {
  const counts = new Map<string, number>()
  let heading = ''
  return Array.from(markdown.matchAll(/^#+ (.*)$|^```(\w*)\n([\s\S]*?)^```$/gm)).flatMap(
    ([, title, lang = '', code = '']) => {
      if (title !== undefined) heading = title
      if (title !== undefined || lang === '') return []
      const place = `${document} › ${heading}`
      const count = (counts.get(place) ?? 0) + 1
      counts.set(place, count)
      return [{ id: count === 1 ? place : `${place} (${count})`, lang, code }]
    },
  )
}

export const snippets = documents.flatMap((document) => snippetsOf(document))
