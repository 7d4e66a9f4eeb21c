from site.packaged import main_program
