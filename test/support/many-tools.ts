import type { JsonObject } from '../../machines/agent/json.js'

/** A tool as an MCP server lists it. */
export interface ListedTool {
  name: string
  description: string
  parameters: JsonObject
}

/** Each server's resources and their operations. */
const servers: Record<string, { things: string[]; deeds: string[]; about: string }> = {
  tracker: {
    things: ['issue', 'pull_request', 'release', 'label', 'milestone'],
    deeds: ['create', 'update', 'list', 'get', 'delete'],
    about: 'the issue tracker of the team',
  },
  calendar: {
    things: ['event', 'invitation', 'room', 'reminder'],
    deeds: ['create', 'update', 'list', 'get', 'delete'],
    about: 'the shared calendar',
  },
  mail: {
    things: ['message', 'draft', 'thread', 'folder'],
    deeds: ['send', 'search', 'list', 'get', 'delete'],
    about: 'the mailbox of the user',
  },
  files: {
    things: ['file', 'folder', 'version', 'share_link'],
    deeds: ['create', 'move', 'list', 'get', 'delete'],
    about: 'the cloud storage',
  },
  billing: {
    things: ['invoice', 'customer', 'subscription', 'refund'],
    deeds: ['create', 'update', 'list', 'get', 'cancel'],
    about: 'the billing system',
  },
  warehouse: {
    things: ['product', 'shipment', 'supplier', 'stock_level'],
    deeds: ['create', 'update', 'list', 'get', 'archive'],
    about: 'the warehouse',
  },
  cluster: {
    things: ['deployment', 'pod', 'secret', 'node'],
    deeds: ['create', 'restart', 'list', 'get', 'delete'],
    about: 'the cluster in production',
  },
  people: {
    things: ['employee', 'absence', 'contract', 'team'],
    deeds: ['create', 'update', 'list', 'get', 'archive'],
    about: 'the personnel system',
  },
  chat: {
    things: ['channel', 'post', 'reaction'],
    deeds: ['create', 'update', 'list', 'get', 'delete'],
    about: 'the chat of the company',
  },
}

const words = {
  create: 'Creates',
  update: 'Changes',
  list: 'Lists',
  get: 'Reads',
  delete: 'Deletes',
  send: 'Sends',
  search: 'Searches',
  move: 'Moves',
  cancel: 'Cancels',
  archive: 'Archives',
  restart: 'Restarts',
} as const

/** 178 tools of nine servers, with realistic descriptions and schemas. Deterministic. */
export const manyTools: readonly ListedTool[] = Object.entries(servers)
  .flatMap(([server, { things, deeds, about }]) =>
    things.flatMap((thing) => deeds.map((deed) => createListed(server, about, thing, deed))),
  )
  .slice(0, 178)

function createListed(server: string, about: string, thing: string, deed: string): ListedTool {
  const plain = thing.replaceAll('_', ' ')
  const verb = words[deed as keyof typeof words]
  const article = /^[aeiou]/.test(plain) ? 'an' : 'a'
  const isMany = deed === 'list' || deed === 'search'
  return {
    name: `${server}_${deed}_${thing}`,
    description:
      `${verb} ${isMany ? `${plain}s` : `${article} ${plain}`} in ${about}. ` +
      `Use it when the user asks to ${deed} ${article} ${plain}, and name the ${plain} by its id, not by its title. ` +
      `Returns JSON with the ${plain} as it is afterwards, its links, and who changed it last. ` +
      `Fails with "forbidden" when the user has no right to do so; ask the user then, and do not try again.`,
    parameters: {
      type: 'object',
      properties: {
        workspace_id: {
          type: 'string',
          description: `The workspace in ${about}, as list_workspaces gives it.`,
        },
        ...(isMany ? manyFields(plain) : oneFields(thing, plain, deed)),
        fields: {
          type: 'array',
          items: {
            type: 'string',
            enum: ['id', 'title', 'body', 'owner', 'created_at', 'updated_at', 'links'],
          },
          description: 'The fields to return. Default: all of them.',
        },
        dry_run: {
          type: 'boolean',
          description: 'Only say what would happen, and change nothing. Default: false.',
        },
      },
      required: isMany ? ['workspace_id'] : ['workspace_id', `${thing}_id`],
      additionalProperties: false,
    },
  }
}

function manyFields(plain: string): JsonObject {
  return {
    query: { type: 'string', description: `Words that the ${plain} has to have in its title or its body.` },
    created_after: { type: 'string', format: 'date-time', description: 'ISO 8601, with the time zone.' },
    created_before: { type: 'string', format: 'date-time', description: 'ISO 8601, with the time zone.' },
    sort: {
      type: 'string',
      enum: ['created', 'updated', 'title', 'owner'],
      description: 'What the list is sorted by. Default: updated.',
    },
    direction: { type: 'string', enum: ['asc', 'desc'], description: 'Default: desc.' },
    page_size: { type: 'integer', minimum: 1, maximum: 100, description: 'Default: 30.' },
    cursor: { type: 'string', description: 'Where the next page begins, as the page before says.' },
  }
}

function oneFields(thing: string, plain: string, deed: string): JsonObject {
  return {
    [`${thing}_id`]: { type: 'string', description: `The id of the ${plain}, such as "${thing}-1042".` },
    ...(['create', 'update', 'send'].includes(deed) && {
      title: { type: 'string', maxLength: 200, description: `What the ${plain} is called.` },
      body: { type: 'string', description: 'Markdown. Mentions (@name) tell the people who are named.' },
      owner: { type: 'string', description: 'The user who is responsible, by mail address.' },
      labels: {
        type: 'array',
        items: { type: 'string' },
        description: 'Labels, which are created where they do not exist yet.',
      },
      due: { type: 'string', format: 'date-time', description: 'Until when. ISO 8601, with the time zone.' },
      attachments: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            name: { type: 'string', description: 'The file name, with its ending.' },
            url: { type: 'string', description: 'Where it is read from: https only.' },
            inline: { type: 'boolean', description: 'Show it in the body. Default: false.' },
          },
          required: ['name', 'url'],
        },
        description: 'Files that go with it, at most ten.',
      },
      notify: {
        type: 'object',
        properties: {
          owner: { type: 'boolean', description: 'Tell the owner by mail.' },
          watchers: { type: 'boolean', description: 'Tell all who watch it.' },
        },
        description: 'Who is told. Default: nobody.',
      },
    }),
    expand: {
      type: 'array',
      items: { type: 'string', enum: ['comments', 'history', 'relations', 'permissions'] },
      description: `What else of the ${plain} to return: each makes the answer longer.`,
    },
    if_version: {
      type: 'integer',
      description: `Refuse when the ${plain} has another version by now. Default: do it anyway.`,
    },
  }
}
