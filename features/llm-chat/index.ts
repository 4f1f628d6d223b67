/** Public face of the llm-chat pack: nothing but what it contributes to `LlmAdapters`. */
export {}
