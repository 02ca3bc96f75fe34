import type { DifferenceKind, SessionDifference } from './play-error.js'
import { type CompleteRecordedAgent, toCanonicalJson, listLeafChanges } from './record-agent.js'
import type { RecordedAgent, RecordedTool } from './recording.js'
import { formatTextDifference, formatValue } from './difference-text.js'

/** Where a session calls its tools: the steps, by the name of the tool. */
export type ToolCallSteps = ReadonlyMap<string, readonly string[]>

type FoundDifference = Pick<SessionDifference, 'by' | 'subject' | 'recorded' | 'now' | 'message'>

/** Compares the requests of an agent with those when it was recorded. Unknown parts are not compared. */
export function compareAgents(
  then: RecordedAgent,
  now: CompleteRecordedAgent,
  called: ToolCallSteps,
): FoundDifference[] {
  return [
    ...(then.instructions === undefined ? [] : comparePrompts(then.instructions, now.instructions)),
    ...(then.tools === undefined ? [] : compareTools(then.tools, now.tools, called)),
    ...findGoneTools(called, then.tools ?? [], now.tools),
    ...(then.settings === undefined
      ? []
      : listLeafChanges(then.settings, now.settings).map(({ path, before, after }) =>
          createDifference('settings', path, before, after, `The setting '${path}' was`),
        )),
    ...(then.output === undefined ? [] : compareOutputs(then.output, now.output)),
    ...Object.entries(then.team ?? {}).flatMap(([name, agent]) =>
      compareMember(name, agent, now.team?.[name]),
    ),
  ]
}

/** Compares an agent that the conversation can be handed to. */
function compareMember(
  name: string,
  then: RecordedAgent,
  now: CompleteRecordedAgent | undefined,
): FoundDifference[] {
  if (now)
    return compareAgents({ ...then, output: now.output }, now, new Map()).map((found) => ({
      ...found,
      message: `The agent '${name}': ${found.message}`,
    }))
  const message = `No handoff leads to the agent '${name}' any more.`
  return [{ by: 'tools', subject: name, recorded: 'there', now: 'gone', message }]
}

function comparePrompts(then: string | null, now: string | null): FoundDifference[] {
  // No prompt, and an empty one, are the same to a model.
  if ((then ?? '') === (now ?? '')) return []
  const message = `The prompt has changed (instructions):\n${formatTextDifference(then ?? '(none)', now ?? '(none)')}`
  return [{ by: 'prompt', subject: 'instructions', recorded: then ?? '', now: now ?? '', message }]
}

function compareTools(
  then: readonly RecordedTool[],
  now: readonly RecordedTool[],
  called: ToolCallSteps,
): FoundDifference[] {
  const present = new Map(now.map((tool) => [tool.name, tool]))
  const known = new Set(then.map(({ name }) => name))
  const differences = then.flatMap((tool): FoundDifference[] => {
    const other = present.get(tool.name)
    return other ? compareTool(tool, other) : [createGoneDifference(tool.name, now, called)]
  })
  const added = now
    .filter(({ name }) => !known.has(name))
    .map(({ name }): FoundDifference => {
      const message = `Tool '${name}' is new: the model was not offered it when the session was recorded.`
      return { by: 'tools', subject: name, recorded: 'not there', now: 'there', message }
    })
  const isMoved =
    differences.length === 0 && added.length === 0 && then.some(({ name }, i) => name !== now[i]?.name)
  if (!isMoved) return [...differences, ...added]
  const [before, after] = [then, now].map((tools) => tools.map(({ name }) => name).join(', ')) as [
    string,
    string,
  ]
  const message = `The tools come in another order: they were ${before}, and are ${after}.`
  return [{ by: 'tools', subject: null, recorded: before, now: after, message }]
}

function compareTool(then: RecordedTool, now: RecordedTool): FoundDifference[] {
  const { name } = then
  const isOther = then.description !== now.description
  const described = `Tool '${name}' is described otherwise:\n${formatTextDifference(then.description, now.description)}`
  const text: FoundDifference = {
    by: 'tools',
    subject: name,
    recorded: then.description,
    now: now.description,
    message: described,
  }
  const changes = listLeafChanges(then.parameters, now.parameters)
  const lines = changes.slice(0, 8).map(({ path, before, after }) => formatSchemaChange(path, before, after))
  if (changes.length > lines.length) lines.push(`  … and in ${changes.length - lines.length} more places`)
  const schema: FoundDifference = {
    by: 'tools',
    subject: name,
    recorded: toCanonicalJson(then.parameters),
    now: toCanonicalJson(now.parameters),
    message: `Tool '${name}' has another schema:\n${lines.join('\n')}`,
  }
  return [...(isOther ? [text] : []), ...(changes.length > 0 ? [schema] : [])]
}

function formatSchemaChange(path: string, before: unknown, after: unknown): string {
  if (before === undefined) return `  + ${path}: ${formatValue(after)}`
  if (after === undefined) return `  - ${path}: ${formatValue(before)}`
  return `  ${path}: was ${formatValue(before)}, is ${formatValue(after)}`
}

/** Tools that the session calls, and that neither the recording nor the agent has. */
function findGoneTools(
  called: ToolCallSteps,
  then: readonly RecordedTool[],
  now: readonly RecordedTool[],
): FoundDifference[] {
  const known = new Set([...then, ...now].map(({ name }) => name))
  return [...called.keys()]
    .filter((name) => !known.has(name))
    .map((name) => createGoneDifference(name, now, called))
}

function createGoneDifference(
  name: string,
  now: readonly RecordedTool[],
  called: ToolCallSteps,
): FoundDifference {
  const steps = called.get(name) ?? []
  const use = steps.length > 0 ? `The session calls it in ${steps.join(', ')}` : 'The session never calls it'
  const has = now.length > 0 ? now.map((tool) => tool.name).join(', ') : 'none'
  const message = `Tool '${name}' is gone. ${use}; the tools are now: ${has}.`
  return { by: 'tools', subject: name, recorded: 'there', now: 'gone', message }
}

function compareOutputs(then: RecordedAgent['output'], now: RecordedAgent['output']): FoundDifference[] {
  return listLeafChanges({ output: then ?? null }, { output: now ?? null }).map(({ path, before, after }) =>
    createDifference('output', path, before, after, `What answers have to be has changed: ${path} was`),
  )
}

function createDifference(
  by: DifferenceKind,
  subject: string,
  before: unknown,
  after: unknown,
  words: string,
): FoundDifference {
  const [recorded, now] = [formatValue(before), formatValue(after)]
  return { by, subject, recorded, now, message: `${words} ${recorded}, and is ${now}.` }
}
