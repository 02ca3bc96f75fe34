// Helpers of the Mastra adapter. They create tools, read steps, and serialize the state of a waiting run.
import { createTool } from '@mastra/core/tools'
import { toSchema } from './schema.mjs'

export const toTools = (tools) =>
  Object.fromEntries(
    tools.map(({ name, description, fields, execute, asks }) => [
      name,
      createTool({
        id: name,
        description,
        inputSchema: toSchema(fields),
        ...(asks && { requireApproval: true }),
        execute: (input, context) => execute(input, { signal: context?.abortSignal }),
      }),
    ]),
  )

export const describe = (error) => `${error?.name ?? 'Error'}: ${error?.message ?? JSON.stringify(error)}`

export const toUsage = (usage) =>
  usage && { input: usage.inputTokens ?? Number.NaN, output: usage.outputTokens ?? Number.NaN }

export function sumOf(steps) {
  if (steps.length === 0) return undefined
  const sum = (key) => steps.reduce((total, { usage }) => total + (usage?.[key] ?? Number.NaN), 0)
  return { inputTokens: sum('inputTokens'), outputTokens: sum('outputTokens') }
}

export async function dump(storage, runId) {
  const workflows = await storage.getStore('workflows')
  const { runs } = await workflows.listWorkflowRuns({})
  const own = runs.filter((run) => run.runId === runId)
  return JSON.stringify({
    runId,
    runs: own.map(({ workflowName, snapshot }) => ({ workflowName, snapshot })),
  })
}

/** Copies the state to another storage and returns the run. */
export async function restore(storage, saved) {
  const { runId, runs } = JSON.parse(saved)
  const workflows = await storage.getStore('workflows')
  await Promise.all(
    runs.map(({ workflowName, snapshot }) => {
      const read = typeof snapshot === 'string' ? JSON.parse(snapshot) : snapshot
      return workflows.persistWorkflowSnapshot({ workflowName, runId, snapshot: read })
    }),
  )
  return runId
}
