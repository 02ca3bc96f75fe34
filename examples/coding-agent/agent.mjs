/** The agent, with project tools, skills, deferred tools of an MCP server, a sub-agent, limits, and a store. */
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { createAgent, toolSearch } from 'statewright'
import { mcpTools } from 'statewright/mcp'
import { instructionsFrom, skills } from 'statewright/skills'
import { fileStore } from 'statewright/stores/file'
import { projectTools } from './tools.mjs'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))

/** The tracker's tools. The model loads only the tools that it needs. Tools with side effects need approval. */
export function openIssues(folder) {
  return mcpTools({
    command: process.execPath,
    args: [here('issues.mjs'), path.join(folder, 'issues.json')],
    name: 'issues',
    defer: true,
    needsApproval: (tool) => !/^(list|read)_/.test(tool),
  })
}

/** `model(role)` returns the model of a role. `folder` contains the project and the sessions. */
export function createCodingAgent({ folder, issues, model, prices, costLimit, window }) {
  const project = path.join(folder, 'project')
  const { look, change } = projectTools(project)
  const reviewer = createAgent({
    model: model('reviewer'),
    prices,
    instructions: 'You review a change. Read the file, and name at most two mistakes that matter.',
    tools: look,
  })
  const review = reviewer.asTool({
    name: 'review',
    description: 'Lets another agent review a file.',
    maxSteps: 10,
  })
  return createAgent({
    model: model('coder'),
    prices,
    instructions: [
      'You are a careful programmer. State your next action in one short line. Keep your plan up to date.',
      instructionsFrom(['AGENTS.md'], { cwd: project }),
    ].join('\n\n'),
    tools: [...look, ...change, review, issues, toolSearch({ limit: 2 })],
    skills: skills({ dirs: [here('skills')] }),
    limits: { maxSteps: 60, costLimit },
    context: { window, strategy: 'summarize' },
    // A call that was running when the process was killed may have taken effect, so a person decides.
    toolCalls: { onInterrupted: 'approval' },
    store: fileStore({ dir: path.join(folder, 'sessions') }),
  })
}
