/** A small MCP server over stdio: an issue tracker in a JSON file. Its only argument is the file. */
import { readFile, writeFile } from 'node:fs/promises'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { z } from 'zod'

const file = process.argv[2]
const server = new McpServer({ name: 'issues', version: '1.0.0' })
const number = z.int().describe('The number of the issue')

/** A tool that receives all issues, and saves its changes. */
function addTool(name, description, inputSchema, work) {
  server.registerTool(name, { description, inputSchema }, async (input) => {
    const issues = await readFile(file, 'utf8').then(JSON.parse, () => structuredClone(first))
    const before = JSON.stringify(issues)
    const text = work(issues, input)
    if (JSON.stringify(issues) !== before) await writeFile(file, JSON.stringify(issues, null, 2))
    return { content: [{ type: 'text', text }] }
  })
}

/** A tool that changes one issue. */
function addChange(name, description, schema, change) {
  addTool(name, description, { number, ...schema }, (issues, input) => {
    const issue = issues.find((each) => each.number === input.number)
    if (issue === undefined) throw new Error(`There is no issue ${input.number}.`)
    return change(issue, input) ?? `Issue ${input.number} is changed.`
  })
}

const first = [
  { number: 11, title: 'Accept days', labels: ['wish'], text: 'parseDuration("3d") throws.', comments: [] },
  {
    number: 12,
    title: 'parseDuration ignores the minutes of 1h30m',
    labels: ['bug'],
    text: 'parseDuration("1h30m") returns 3600000. I expect 5400000.\nThe code is in src/duration.mjs.',
    comments: ['It should also reject "1h foo", I think.'],
  },
]

addTool('list_issues', 'Lists the numbers, titles and labels of all open issues.', {}, (issues) =>
  issues
    .filter(({ isClosed }) => !isClosed)
    .map((issue) => `${issue.number} [${issue.labels}] ${issue.title}`)
    .join('\n'),
)
addChange('read_issue', 'Reads an issue with its comments.', {}, (issue) =>
  [`# ${issue.title}`, issue.text, ...issue.comments.map((comment) => `> ${comment}`)].join('\n\n'),
)
addChange('comment', 'Adds a comment to an issue.', { text: z.string() }, (issue, { text }) => {
  issue.comments.push(text)
})
addChange('close', 'Closes an issue.', {}, (issue) => {
  issue.isClosed = true
})
addChange('rename', 'Changes the title of an issue.', { title: z.string() }, (issue, { title }) => {
  issue.title = title
})
addChange(
  'set_labels',
  'Replaces the labels of an issue.',
  { labels: z.array(z.string()) },
  (issue, { labels }) => {
    issue.labels = labels
  },
)

await server.connect(new StdioServerTransport())
