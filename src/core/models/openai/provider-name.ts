/** Hosts that are known by their end, with the name under which prices are kept. */
const hosts: [end: string, provider: string][] = [
  ['api.openai.com', 'openai'],
  ['openai.azure.com', 'azure'],
  ['services.ai.azure.com', 'azure'],
  ['cognitiveservices.azure.com', 'azure'],
  ['azure-api.net', 'azure'],
  ['api.anthropic.com', 'anthropic'],
  ['googleapis.com', 'google'],
  ['api.deepseek.com', 'deepseek'],
  ['api.groq.com', 'groq'],
  ['api.mistral.ai', 'mistral'],
  ['openrouter.ai', 'openrouter'],
  ['api.x.ai', 'x-ai'],
  ['api.together.xyz', 'together'],
  ['api.together.ai', 'together'],
  ['api.fireworks.ai', 'fireworks'],
  ['api.perplexity.ai', 'perplexity'],
  ['api.cohere.ai', 'cohere'],
  ['api.cohere.com', 'cohere'],
  ['api.cerebras.ai', 'cerebras'],
  ['api.moonshot.ai', 'moonshotai'],
  ['api.moonshot.cn', 'moonshotai'],
  ['api.novita.ai', 'novita'],
  ['api.z.ai', 'zai'],
  ['router.huggingface.co', 'huggingface'],
]

/** Servers on one's own machine or network, by the port that they take unless told otherwise. */
const localPorts: Record<string, string> = { 11434: 'ollama', 1234: 'lmstudio', 8000: 'vllm' }

/** The provider behind a base URL: a known name, else the host itself. */
export function getProviderName(baseURL: string): string {
  const url = new URL(baseURL)
  const known = hosts.find(([end]) => url.hostname === end || url.hostname.endsWith(`.${end}`))
  if (known !== undefined) return known[1]
  // The path that GPUStack alone has; at /v1 it cannot be told from others.
  if (url.pathname.startsWith('/v1-openai')) return 'gpustack'
  const local = localPorts[url.port]
  return local !== undefined && isPrivate(url.hostname) ? local : url.hostname
}

function isPrivate(host: string): boolean {
  return (
    /^(localhost|127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|0\.0\.0\.0|\[::1\])/.test(host) ||
    !host.includes('.')
  )
}
