// The tools of the Mastra agents: one that works, one that fails.
import { createTool } from "@mastra/core/tools";
import { z } from "zod";

export const tools = {
  query_database: createTool({
    id: "query_database",
    description: "Query the database.",
    inputSchema: z.object({ sql: z.string() }),
    execute: async () => "442300",
  }),
  search_document_content: createTool({
    id: "search_document_content",
    description: "Search the documents.",
    inputSchema: z.object({ query: z.string() }),
    execute: async () => {
      throw new Error("index offline");
    },
  }),
};
