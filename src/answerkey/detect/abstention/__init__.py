"""Does a reply decline to answer?"""
