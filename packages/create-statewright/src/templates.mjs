/**
 * What a project can begin as. `steps`: what a person types then. `parts`: what it takes from the repository's examples, from each path to a
 * path of the project.
 */
export const templates = {
  agent: { about: 'one file and a test', steps: ['npm start', 'npm test'], parts: [] },
  chat: {
    about: 'a page with useChat, a Hono server, chats in files',
    steps: ['npm start', 'npm test'],
    parts: [
      ['examples/chat-react/src', 'page'],
      ['examples/chat-react/agent.mjs', 'agent.mjs'],
    ],
  },
  service: {
    about: 'agents behind HTTP with Postgres, DBOS, OpenTelemetry and Docker Compose',
    steps: ['npm test', 'SERVICE_TOKEN=choose-one docker compose up'],
    parts: [],
  },
}
