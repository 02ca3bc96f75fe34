/** Models and tools from the AI SDK for agents. Install the provider packages separately. */
export { languageModel } from './language-model.js'
export type { AiSdkModel, LanguageModelOptions, SpecificationVersion } from './model-options.js'
export { aiTools, type AiSdkTool, type AiTools } from './ai-tools.js'
