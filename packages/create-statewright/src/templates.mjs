/**
 * The project templates. `steps` lists the next commands for the person. `parts` maps paths of the repository's examples to paths in
 * the project.
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
